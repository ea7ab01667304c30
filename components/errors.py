"""Errors of the platform.

PlatformError           anything a person can act on; carries `hint`, the way out
├── ConfigError         the stack file says something that cannot be
├── ManifestError       parts that are each valid do not fit together
├── AssetError          a local asset (chart, image, kubeconfig) is missing
├── RepositoryError     a model repository cannot be read, written or trusted (serving.repository.errors)
├── BatchError          a batch run cannot begin or go on (serving.batch.errors)
├── RegistryError       the registry of versions cannot be read, or refuses a step (serving.registry.errors)
├── ToolError           a command behind `make` failed (tools.errors)
└── LoadError           a load run cannot be made or trusted (loadtests.errors)
"""

import os
import select
import sys
from collections.abc import Callable

# What a shell expects of a program that Ctrl-C ended.
INTERRUPTED = 130
# And of one whose reader has left, as `head` does: 128 and SIGPIPE.
UNREAD = 141


class PlatformError(Exception):
    """`message` names the thing, its value and the reason; `hint` is the way out."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}"


class ConfigError(PlatformError):
    """The stack file says something that cannot be; the message names stack, key path, value and reason."""


class ManifestError(PlatformError):
    """Parts that are each valid do not fit together; `keys` lead to the one to change, below the model's in the stack file, where it is one."""

    def __init__(self, message: str, hint: str, keys: tuple[str | int, ...] = ()) -> None:
        super().__init__(message, hint)
        self.keys = keys


class AssetError(PlatformError):
    """A local asset (chart, image, kubeconfig) that the stack refers to is missing."""


def run_main(work: Callable[[], int]) -> int:
    """Exit code of a command: 1 with a sentence and the way out for an error a person can act on, 130 for Ctrl-C, 141 where nobody reads on."""
    try:
        return while_read(work)
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


def while_read(work: Callable[[], int]) -> int:
    """The exit code of `work`; 141, without a word, when whoever reads standard output has left. Another pipe that breaks is a fault."""
    try:
        code = work()
        sys.stdout.flush()
    except BrokenPipeError:
        if not _output_is_broken():
            raise
        # Python flushes once more at its end; what is left goes nowhere (Python's documentation, "Note on SIGPIPE").
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    return code


def _output_is_broken() -> bool:
    """Whether standard output is a pipe, or a socket, without a reader (poll(2), POLLERR)."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in asked.poll(0))
