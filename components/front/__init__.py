"""Front: the HTTP front of a model."""
