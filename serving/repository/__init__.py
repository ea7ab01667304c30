"""The model repository: built from model.yaml, published, backed up, and fetched by the servers that serve from it."""

from serving.repository.stage import stage_repository

__all__ = ["stage_repository"]
