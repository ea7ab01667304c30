"""GPU models: what they are called and how far MIG can divide them."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Accelerator(StrEnum):
    """GPU model of a node; the value is what a person writes in the stack file."""

    T4 = "t4"
    V100 = "v100"
    A10G = "a10g"
    L4 = "l4"
    L40S = "l40s"
    A30 = "a30"
    A100 = "a100"
    H100 = "h100"
    H200 = "h200"
    B200 = "b200"
    SIMULATED = "simulated"


@dataclass(frozen=True)
class MigGeometry:
    """How many slices of compute and of memory a card is divided into, and the compute sizes an instance can have."""

    compute_slices: int
    memory_slices: int
    compute_sizes: frozenset[int]


_SEVENTHS = MigGeometry(7, 8, frozenset({1, 2, 3, 4, 7}))
_QUARTERS = MigGeometry(4, 4, frozenset({1, 2, 4}))
# NVIDIA MIG User Guide, "Supported MIG Profiles": columns "Fraction of SMs" and "Fraction of Memory". What is not listed has no MIG.
MIG_GEOMETRY = {
    Accelerator.A30: _QUARTERS,
    Accelerator.A100: _SEVENTHS,
    Accelerator.H100: _SEVENTHS,
    Accelerator.H200: _SEVENTHS,
    Accelerator.B200: _SEVENTHS,
}

MIG_PROFILE = re.compile(r"(?P<compute>[1-9])g\.(?P<memory>[1-9][0-9]*)gb(\+me)?")


@dataclass(frozen=True)
class MigSlices:
    """What one MIG device takes from its card."""

    compute: int
    memory: int


def mig_slices(profile: str, accelerator: Accelerator, card_memory_mib: int) -> MigSlices:
    """Slices that `profile` (`<compute>g.<memory>gb`) takes from a card; ValueError with the reason when the card has no such profile."""
    geometry = MIG_GEOMETRY.get(accelerator)
    if geometry is None:
        raise ValueError(f"accelerator {accelerator.value} has no MIG; those that have: {', '.join(sorted(MIG_GEOMETRY))}")
    match = MIG_PROFILE.fullmatch(profile)
    if match is None:
        raise ValueError(f"MIG profile {profile!r} is not of the form <compute>g.<memory>gb, such as 1g.10gb")
    compute = int(match["compute"])
    # Profile names round to whole gigabytes, in NVIDIA's lists by less than half a slice in either direction.
    slice_gb = card_memory_mib / 1024 / geometry.memory_slices
    memory = round(int(match["memory"]) / slice_gb)
    if compute not in geometry.compute_sizes or not compute <= memory <= geometry.memory_slices:
        raise ValueError(f"MIG profile {profile!r} does not exist on accelerator {accelerator.value} with {card_memory_mib} MiB")
    return MigSlices(compute, memory)
