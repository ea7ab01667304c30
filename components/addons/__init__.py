"""Add-ons: what the platform installs beside the models."""
