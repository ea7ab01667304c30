"""The programs, where each comes from, and how it is linked.

Everything is built from the Go modules in tools/gomod at the versions their go.mod and go.sum pin; no version stands here a second time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.paths import REPO, content_key
from tools.toolchain.gomod import module_path, module_version

GOMOD = REPO / "tools" / "gomod"
# CGO off: static binaries, so that they run in images made from scratch. The paths and the commit of the build machine stay out of the binaries.
BUILD_ENV = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
BUILD_FLAGS = ("-trimpath", "-buildvcs=false")
# Symbol tables and debug data are a third of each binary; nobody debugs these here.
STRIP = "-s -w"


@dataclass(frozen=True)
class Group:
    """Programs built by one `go build`: `tools` maps a program's name to its Go package, `module` is the folder in tools/gomod.

    Groups of one module share its compiled libraries through Go's build cache; they are groups of their own so that one of them can be left out.
    """

    name: str
    module: str
    tools: dict[str, str]
    variables: Callable[[Path], dict[str, str]] = field(default=lambda _gomod: {})
    default: bool = True

    @property
    def directory(self) -> Path:
        return GOMOD / self.module

    @property
    def ldflags(self) -> str:
        """Linker flags: stripped, with the versions that a build outside the upstream's own scripts would leave empty."""
        settings = self.variables(self.directory / "go.mod")
        return " ".join([STRIP, *(f"-X {variable}={value}" for variable, value in settings.items())])

    @property
    def key(self) -> str:
        """Changes with the pinned modules, with our own sources among the packages, and with how they are built."""
        gomod = self.directory / "go.mod"
        own = [
            self.directory / package.removeprefix(module_path(gomod)).lstrip("/")
            for package in self.tools.values()
            if package.startswith(module_path(gomod))
        ]
        sources = [gomod, gomod.with_name("go.sum"), *(file for folder in own for file in folder.glob("*.go"))]
        packages = " ".join(f"{name}={package}" for name, package in sorted(self.tools.items()))
        return content_key(sources, extra=f"{packages} {self.ldflags} {BUILD_FLAGS} {BUILD_ENV}")


def _kubernetes_version(gomod: Path) -> dict[str, str]:
    version = module_version(gomod, "k8s.io/kubernetes")
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    return {f"{package}.gitVersion": version, f"{package}.gitMajor": major, f"{package}.gitMinor": minor}


def _pulumi_version(gomod: Path) -> dict[str, str]:
    return {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": module_version(gomod, "github.com/pulumi/pulumi/pkg/v3")}


def _provider_version(gomod: Path) -> dict[str, str]:  # noqa: ARG001  the same signature as the others
    from tools.toolchain.provider import provider_version  # noqa: PLC0415  asked for only when the provider is built

    return {"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version": provider_version()}


KUBERNETES = "k8s.io/kubernetes/cmd"
GROUPS = (
    Group(
        "cluster",
        "platform",
        {
            **{
                name: f"{KUBERNETES}/{name}"
                for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubeadm", "kubectl")
            },
            "pilot-discovery": "istio.io/istio/pilot/cmd/pilot-discovery",
            "pilot-agent": "istio.io/istio/pilot/cmd/pilot-agent",
            "coredns": "github.com/coredns/coredns",
        },
        _kubernetes_version,
    ),
    Group("pulumi", "platform", {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"}, _pulumi_version),
    Group("provider", "provider", {"pulumi-resource-kubernetes": "platform.local/provider"}, _provider_version),
    Group("images", "platform", {"gpu-simulator": "platform.local/toolchain/gpusim", "pause": "platform.local/toolchain/pause"}),
    Group("etcd", "etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Group(
        "keda",
        "platform",
        {"keda-operator": "github.com/kedacore/keda/v2/cmd/operator", "keda-adapter": "github.com/kedacore/keda/v2/cmd/adapter"},
        default=False,
    ),
    Group("metrics-server", "platform", {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"}, default=False),
)
BY_NAME = {group.name: group for group in GROUPS}
