"""What a person says about add-ons: where they come from and how large they are."""

from typing import Annotated, Literal

from pydantic import Field

from components.core.spec import Spec


class ModuleSource(Spec):
    """From the Go module the tools build, charts and binaries of one commit; needs no network."""

    kind: Literal["module"]


class ChartSource(Spec):
    """From a chart repository, at one version; there is no default version, so that no upgrade happens by itself."""

    kind: Literal["chart"]
    repository: Annotated[str, Field(pattern=r"^(https|oci)://\S+$", description="URL of the chart repository.")]
    version: Annotated[
        str, Field(pattern=r"^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$", description="Exact version of the charts, such as 1.2.3; no range.")
    ]


class IstioSpec(Spec):
    """Istio: its custom resources and its control plane."""

    source: Annotated[ModuleSource | ChartSource, Field(discriminator="kind")]
    replicas: Annotated[int, Field(ge=1, le=10, description="Pods of the control plane.")] = 1
    cpu_request: Annotated[float, Field(gt=0, le=32, description="CPU cores reserved by each pod of the control plane.")] = 0.1
    memory_mib: Annotated[int, Field(ge=128, le=65_536, description="Memory reserved and at most for each of these pods, in MiB.")] = 512
