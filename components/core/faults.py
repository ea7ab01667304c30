"""Faults between keys that are each valid: what the rules of a spec yield and pydantic carries to the loader."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault below the object that raises it; `keys` lead from there, in the spelling of the file."""

    keys: tuple[str | int, ...]
    reason: str
    way_out: str


class FaultsError(ValueError):
    """All faults of one object: pydantic keeps a ValueError of a validator, so that the loader finds them again."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, fault.keys))}: {fault.reason}" for fault in faults))
        self.faults = tuple(faults)


def refuse(faults: Sequence[Fault]) -> None:
    """Raise FaultsError when there is a fault."""
    if faults:
        raise FaultsError(faults)
