"""What of a stack runs in the image of the platform's own programs, `apps`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig

APPS_IMAGE = "apps"


def apps_users(config: StackConfig) -> Iterator[tuple[str, ...]]:
    """The keys whose programs run there; none: the stack needs no such image."""
    for name, model in config.models.items():
        if model.repository.kind != "image":
            yield ("models", name, "repository")
        if model.front is not None:
            yield ("models", name, "front")
    for name in config.batch_jobs:
        yield ("batchJobs", name)
