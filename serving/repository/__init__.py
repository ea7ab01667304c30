"""The model repository: built from model.yaml, published, backed up, and fetched by the servers that serve from it."""
