"""Who a model is: the names that server, route, queries and load tests must agree on."""

from dataclasses import dataclass

from components.naming import DNS_LABEL

# The longest suffix a Deployment name gets is "-v<version>-<pod template hash>-<pod>"; 40 leaves room for it in 63 characters.
MODEL_NAME_MAX = 40


def check_model_name(name: str) -> str:
    """Return `name` if Kubernetes objects can be named after it, else raise ValueError with the reason."""
    if len(name) > MODEL_NAME_MAX:
        raise ValueError(f"{name!r} has {len(name)} characters; at most {MODEL_NAME_MAX} leave room for version and pod suffixes")
    if not DNS_LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is no DNS label: lower-case letters, digits and '-', starting with a letter; put other spellings into tritonName")
    return name


@dataclass(frozen=True)
class ModelIdentity:
    """A model in a namespace; `triton_name` is what callers put into /v2/models/<triton_name>."""

    name: str
    triton_name: str
    namespace: str

    @property
    def service(self) -> str:
        return self.name

    @property
    def host(self) -> str:
        """The Service's full name, which is also the host of the DestinationRules."""
        return f"{self.service}.{self.namespace}.svc.cluster.local"

    @property
    def front(self) -> str:
        """Name of the HTTP front's objects, where the model has one."""
        return f"{self.name}-front"

    @property
    def front_host(self) -> str:
        return f"{self.front}.{self.namespace}.svc.cluster.local"

    def deployment(self, version: int) -> str:
        return f"{self.name}-{version_label(version)}"


def version_label(version: int) -> str:
    """Value of the `version` label and name of the Istio subset."""
    return f"v{version}"
