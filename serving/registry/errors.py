"""What can go wrong with the registry, as a sentence and a way out."""

from components.errors import PlatformError

# As a person types it in the clone, after `eval "$(make env)"`.
COMMAND = ".venv/bin/python -m serving.registry"


class RegistryError(PlatformError):
    """The registry cannot be reached or read, or refuses a step; the message names place, value and reason."""
