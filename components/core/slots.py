"""Slots: what the scheduler hands out. A slot is a card, a share of a card or a MIG device, named by an extended resource."""

from components.core.accelerators import MIG_GEOMETRY, mig_slices
from components.core.node_pool import GpuNodePoolSpec, MigProfileSpec, MigSpec, MpsSpec, TimeSlicingSpec

GPU_RESOURCE = "nvidia.com/gpu"
# Name the device plugin gives shared slots with `renameByDefault` (NVIDIA/k8s-device-plugin README, "Shared Access to GPUs").
SHARED_GPU_RESOURCE = f"{GPU_RESOURCE}.shared"
MIG_RESOURCE_PREFIX = "nvidia.com/mig-"


def resource_name(pool: GpuNodePoolSpec, mig_profile: str | None = None) -> str:
    """Extended resource of the pool's slots; ValueError when `mig_profile` is missing or does not belong to the pool."""
    sharing = pool.sharing
    if isinstance(sharing, MigSpec):
        profile = _profile(sharing, mig_profile).profile
        # The plugin writes the profile's "+" as "." because "+" cannot stand in a resource name.
        return GPU_RESOURCE if sharing.strategy == "single" else MIG_RESOURCE_PREFIX + profile.replace("+", ".")
    if mig_profile is not None:
        raise ValueError(f"migProfile {mig_profile!r} needs a pool with sharing.mode mig; this pool has {sharing.mode}")
    if isinstance(sharing, TimeSlicingSpec | MpsSpec) and sharing.rename:
        return SHARED_GPU_RESOURCE
    return GPU_RESOURCE


def slots_per_node(pool: GpuNodePoolSpec, mig_profile: str | None = None) -> int:
    """Slots of one node after sharing."""
    return pool.cards_per_node * _slots_per_card(pool, mig_profile)


def max_slots(pool: GpuNodePoolSpec, mig_profile: str | None = None) -> int:
    """Slots of the pool at its largest size."""
    return pool.max_nodes * slots_per_node(pool, mig_profile)


def slot_memory_mib(pool: GpuNodePoolSpec, mig_profile: str | None = None) -> int:
    """GPU memory a slot can count on, in MiB: an equal part when the card is shared, the device's own under MIG."""
    if not isinstance(pool.sharing, MigSpec):
        return pool.card_memory_mib // _slots_per_card(pool, mig_profile)
    profile = _profile(pool.sharing, mig_profile).profile
    slices = mig_slices(profile, pool.accelerator, pool.card_memory_mib)
    return pool.card_memory_mib * slices.memory // MIG_GEOMETRY[pool.accelerator].memory_slices


def slot_request(pool: GpuNodePoolSpec, slots: int, mig_profile: str | None = None) -> dict[str, str]:
    """Resource request of one pod for `slots` slots, summed over its containers; ValueError with the reason when the pool cannot give them.

    Two slots of a shared card may be the same card (NVIDIA/k8s-device-plugin#491), and of two MIG devices a CUDA process sees one
    (NVIDIA/k8s-device-plugin#397): such a pool gives one slot per pod.
    """
    resource = resource_name(pool, mig_profile)
    if slots < 1:
        raise ValueError(f"{slots} slots: a server of a GPU pool takes at least 1")
    if pool.sharing.mode != "none" and slots > 1:
        raise ValueError(f"{slots} slots per replica, but a pool with sharing.mode {pool.sharing.mode} gives 1: the slots may share one card")
    if slots > slots_per_node(pool, mig_profile):
        raise ValueError(f"{slots} slots per replica, but a node of the pool has {slots_per_node(pool, mig_profile)}: no node can ever hold it")
    return {resource: str(slots)}


def _slots_per_card(pool: GpuNodePoolSpec, mig_profile: str | None) -> int:
    if isinstance(pool.sharing, MigSpec):
        return _profile(pool.sharing, mig_profile).count
    return pool.sharing.replicas if isinstance(pool.sharing, TimeSlicingSpec | MpsSpec) else 1


def _profile(sharing: MigSpec, wanted: str | None) -> MigProfileSpec:
    """The pool's entry for `wanted`; without a wish the only one there is."""
    names = [entry.profile for entry in sharing.profiles]
    if wanted is None and len(names) == 1:
        return sharing.profiles[0]
    if wanted not in names:
        raise ValueError(f"migProfile {wanted!r} is none of the pool's profiles {names}")
    return sharing.profiles[names.index(wanted)]
