"""The root model of a stack file: everything a person may write under `inference-platform:` in stacks/Pulumi.<stack>.yaml."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from components.addons.spec import IstioSpec
from components.batch.spec import BatchJobSpec
from components.core.faults import FaultsError
from components.core.model_identity import ModelIdentity, check_model_name
from components.core.model_repository import ImageRepositorySpec, ModelCacheSpec, RepositorySpec
from components.core.node_pool import GpuNodePoolSpec
from components.core.slo import SloSpec
from components.core.spec import Spec
from components.devices.spec import SimulatedGpusSpec
from components.front.spec import FrontSpec
from components.inference.network_spec import NetworkSpec
from components.inference.spec import ServerSpec
from components.naming import DNS_LABEL, DNS_LABEL_MAX
from components.traffic.spec import CanarySpec, GatewaySpec, RoutingSpec
from serving.compatibility import Release
from serving.model_config import ImageVariant, ServingSpec
from stacks.registry import RegistrySpec


class Environment(StrEnum):
    """Where a stack stands; a stack is named after it, alone (`dev`) or with a suffix (`dev-eu`)."""

    LOCAL = "local"
    DEV = "dev"
    STAGING = "staging"
    PROD = "prod"


def _check_label(name: str) -> str:
    if len(name) > DNS_LABEL_MAX or not DNS_LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is no DNS label: at most {DNS_LABEL_MAX} lower-case letters, digits and '-', starting with a letter")
    return name


class ClusterSpec(Spec):
    """The Kubernetes cluster of the stack; there is no default context, so that nothing lands where kubectl happens to point."""

    context: Annotated[str, Field(min_length=1, description="Context in the kubeconfig; never the current one by accident.")]
    kubeconfig: Annotated[
        str | None, Field(min_length=1, description="Path of the kubeconfig, '~' allowed; absent: $KUBECONFIG or ~/.kube/config.")
    ] = None
    namespace: Annotated[str, AfterValidator(_check_label), Field(description="Namespace of the models.")] = "inference"
    simulated_gpus: Annotated[SimulatedGpusSpec | None, Field(description="GPUs the node claims to have; local only.")] = None
    model_cache: Annotated[
        ModelCacheSpec | None,
        Field(
            description="Folder that keeps fetched model files on the nodes outside every pool, which the pools' labels tell: a pool without labels "
            "gets it too. For models without a pool; absent: none."
        ),
    ] = None
    network: Annotated[NetworkSpec, Field(description="Who may call models past the gateway, read metrics, and what pods may reach.")] = NetworkSpec()


class AddonsSpec(Spec):
    """What the platform installs beside the models."""

    istio: IstioSpec


ImageRef = Annotated[str, Field(pattern=r"^\S+(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$")]


class ImagesSpec(Spec):
    """Images of the platform's own that a registry serves; the local stack takes what `make images` built instead."""

    variant: Annotated[
        ImageVariant,
        Field(
            description="cpu: Triton with the Python backend alone, ONNX through onnxruntime; gpu: built on NVIDIA's image, with its native backends."
        ),
    ] = "cpu"
    triton: Annotated[ImageRef | None, Field(description="The serving image with its models: tag or, better, digest.")] = None
    apps: Annotated[
        ImageRef | None,
        Field(description="The platform's own programs, which a front or a repository outside the serving image needs: tag or, better, digest."),
    ] = None
    triton_version: Annotated[
        Release | None,
        Field(description="Triton in the serving image, as GET /v2 answers; absent: known for variant cpu as built here, unknown for any other."),
    ] = None


class ModelSpec(ServingSpec):
    """One served model: its stable version gets all traffic the canary does not."""

    version: Annotated[int, Field(ge=1, description="Stable version, as published in serving/models/<name>/model.yaml.")]
    canary: Annotated[CanarySpec | None, Field(description="Second version and its share of the traffic; absent: none.")] = None
    triton_name: Annotated[
        str | None, Field(min_length=1, description="Name in the model repository and in /v2/models/<name>; absent: the model's key.")
    ] = None
    server: ServerSpec = ServerSpec()
    repository: Annotated[RepositorySpec, Field(description="Where the model's files come from; absent: the serving image.")] = ImageRepositorySpec()
    front: Annotated[FrontSpec | None, Field(description="HTTP front: files in, JSON out; absent: none.")] = None
    slo: SloSpec
    routing: RoutingSpec = RoutingSpec()

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions that run: the stable one, then the canary."""
        return (self.version,) if self.canary is None else (self.version, self.canary.version)

    def identity(self, name: str, namespace: str) -> ModelIdentity:
        return ModelIdentity(name=name, triton_name=self.triton_name or name, namespace=namespace)


PoolName = Annotated[str, AfterValidator(_check_label)]
ModelName = Annotated[str, AfterValidator(check_model_name)]


class StackConfig(Spec):
    """The whole configuration of one stack."""

    environment: Annotated[Environment, Field(description="Environment of the stack; the stack's name must be this or begin with it and '-'.")]
    cluster: ClusterSpec
    addons: AddonsSpec
    gateway: GatewaySpec
    images: ImagesSpec = ImagesSpec()
    node_pools: Annotated[dict[PoolName, GpuNodePoolSpec], Field(default_factory=dict, description="GPU node pools by name.")]
    registry: Annotated[RegistrySpec | None, Field(description="Registry that decides which versions may get traffic; absent: none is asked.")] = None
    models: Annotated[dict[ModelName, ModelSpec], Field(min_length=1, description="Models by name; a DNS label, part of the external host.")]
    batch_jobs: Annotated[dict[ModelName, BatchJobSpec], Field(default_factory=dict, description="Batch runs by name; each is a Job.")]

    @model_validator(mode="after")
    def _keys_fit_together(self, info: ValidationInfo) -> Self:
        from stacks.rules import stack_faults  # noqa: PLC0415  (the rules are about this class)

        stack = (info.context or {}).get("stack", self.environment.value)
        faults = list(stack_faults(self, stack))
        if faults:
            raise FaultsError(faults)
        return self

    @classmethod
    def top_level_keys(cls) -> frozenset[str]:
        """Keys directly under the project's namespace, as the file spells them."""
        return frozenset(field.alias or name for name, field in cls.model_fields.items())
