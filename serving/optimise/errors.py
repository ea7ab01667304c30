"""What can go wrong in the optimisation pipeline, as a sentence and a way out."""

from components.errors import PlatformError


class OptimisationError(PlatformError):
    """A model cannot be optimised or measured."""


class RefusedError(OptimisationError):
    """A derived version does not keep the bound that its model.yaml states."""
