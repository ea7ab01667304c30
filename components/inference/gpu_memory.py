"""GPU memory of a server: what its instances take of a card, or of the part of a card that a slot is."""

from collections.abc import Sequence

from components.core.slots import slot_memory_mib
from components.errors import ManifestError
from components.inference.placement import PoolUse
from components.inference.spec import ModelFootprint, ServerSpec

# The rest is for the CUDA context, the libraries' workspaces and fragmentation.
USABLE_PERCENT = 80
COUNT = ("instances", "count")


def check_gpu_memory(model: str, server: ServerSpec, pool: PoolUse | None, footprints: Sequence[ModelFootprint]) -> None:
    """ManifestError when the instances on the fullest GPU take more than USABLE_PERCENT of the slot's memory, or when nobody said what they take.

    A slot of a shared card counts as an equal part of it, a MIG device with its own memory; the server's CUDA pool lies beside the models.
    """
    on_gpu = [footprint for footprint in footprints if footprint.instances_per_gpu]
    if not on_gpu or pool is None:
        return
    if any(footprint.gpu_memory_mib is None for footprint in on_gpu):
        raise ManifestError(
            f"model {model!r} has instances on GPUs, and its model.yaml does not say how much GPU memory one takes",
            hint="publish the version with gpuMemoryMib, as nvidia-smi shows it under load, or set instances.kind: cpu",
            keys=("instances", "kind"),
        )
    needed = sum(footprint.instances_per_gpu * (footprint.gpu_memory_mib or 0) for footprint in on_gpu) + server.cuda_pool_mib
    slot = slot_memory_mib(pool.spec, server.mig_profile)
    usable = slot * USABLE_PERCENT // 100
    if needed > usable:
        instances = sum(footprint.instances_per_gpu for footprint in on_gpu)
        raise ManifestError(
            f"model {model!r}: {instances} instances per GPU and {server.cuda_pool_mib} MiB for server.cudaMemoryPoolMib take {needed} MiB of GPU "
            f"memory, and {USABLE_PERCENT} % of a slot of node pool {pool.name!r} ({slot} MiB) are {usable} MiB",
            hint="lower instances.count or server.cudaMemoryPoolMib, or choose a pool with larger cards or fewer slots per card",
            keys=COUNT,
        )
