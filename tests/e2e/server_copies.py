"""The model server under another name and with other files in it: the live pod template, apart from the model's Service."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from components import labels
from components.inference.pod_manifest import config_key
from serving.contract import REPOSITORY_PATH
from tests.e2e.kube import Manifest
from tests.e2e.platform import MODEL, NAMESPACE, Platform

# Name of the volume in the template that holds config.pbtxt.
CONFIG_VOLUME = "model-config"
OVERLAY_VOLUME = "overlay"


@dataclass(frozen=True, kw_only=True)
class ServerCopy:
    """`config` takes the place of config.pbtxt, `files` (path below the model's directory -> text) lie over the image's own."""

    name: str
    config: str | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def selector(self) -> dict[str, str]:
        return {labels.NAME: self.name}

    def manifests(self, platform: Platform) -> Sequence[Manifest]:
        """What to create: the files, then the Deployment with the template of the live one."""
        live = platform.kube.get("deployments", f"{MODEL}-v1", NAMESPACE)
        assert live is not None
        pod = live["spec"]["template"]["spec"]
        [container] = pod["containers"]
        volumes = [self._config(volume) if volume["name"] == CONFIG_VOLUME else volume for volume in pod["volumes"]]
        mounts = [
            {"name": OVERLAY_VOLUME, "mountPath": f"{REPOSITORY_PATH}/{MODEL}/{path}", "subPath": _key(path), "readOnly": True} for path in self.files
        ]
        spec = {
            **pod,
            "containers": [{**container, "volumeMounts": [*container["volumeMounts"], *mounts]}],
            "volumes": [*volumes, {"name": OVERLAY_VOLUME, "configMap": {"name": self.name}}],
        }
        return (self._config_map(), self._deployment(spec))

    def _config(self, volume: Manifest) -> Manifest:
        return volume if self.config is None else {**volume, "configMap": {"name": self.name}}

    def _config_map(self) -> Manifest:
        own = {} if self.config is None else {config_key(MODEL): self.config}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "data": {**own, **{_key(path): text for path, text in self.files.items()}},
        }

    def _deployment(self, pod: Manifest) -> Manifest:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": self.selector}, "template": {"metadata": {"labels": self.selector}, "spec": pod}},
        }


def _key(path: str) -> str:
    """A ConfigMap's keys hold no slash."""
    return path.replace("/", "_")
