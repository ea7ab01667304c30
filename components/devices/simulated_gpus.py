"""SimulatedGpus: GPUs for a cluster that has none."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apps.v1 import DaemonSet

from components.base import PlatformComponent
from components.core.slots import GPU_RESOURCE
from components.devices.simulated_gpus_manifest import AWAIT_TIMEOUT_SECONDS, build_simulator
from components.devices.spec import SimulatedGpusSpec


@dataclass(frozen=True, kw_only=True)
class SimulatedGpusArgs:
    """How many cards, and the image of the simulator."""

    spec: SimulatedGpusSpec
    image: pulumi.Input[str]


class SimulatedGpus(PlatformComponent):
    """Makes the DaemonSet `gpu-simulator` in kube-system; `resource_name` is the resource that pods ask for."""

    AREA = "devices"

    resource_name: pulumi.Output[str]

    def __init__(self, name: str, args: SimulatedGpusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        timeout = f"{AWAIT_TIMEOUT_SECONDS}s"
        simulator = DaemonSet(
            f"{name}-simulator",
            **build_simulator(args.spec, args.image),
            opts=self.child_opts(custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout)),
        )
        # Known once the DaemonSet is, so whoever uses it waits for the simulator.
        self.resource_name = simulator.id.apply(lambda _: GPU_RESOURCE)
        self.register_outputs({"resourceName": self.resource_name})
