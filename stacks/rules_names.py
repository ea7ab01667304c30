"""Names that two owners would give to objects of one kind: the second would take over, and change, what the first one made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.addons.istio_values import NAMESPACE as ISTIO_NAMESPACE
from components.batch.job_manifest import job_account
from components.core.faults import Fault
from components.traffic.gateway_manifest import NAMESPACE as GATEWAY_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig

# Kubernetes documentation, "Namespaces": the four it begins with. What is labelled restricted there, or goes with the stack, is not the models'.
TAKEN_NAMESPACES = {
    **dict.fromkeys(("default", "kube-system", "kube-public", "kube-node-lease"), "Kubernetes' own"),
    ISTIO_NAMESPACE: "Istio's",
    GATEWAY_NAMESPACE: "the gateway's",
}
# Kubernetes makes it in every namespace.
DEFAULT_ACCOUNT = "default"


def name_faults(config: StackConfig) -> Iterator[Fault]:
    """Models, fronts, batch jobs and the namespace keep apart."""
    if (namespace := config.cluster.namespace) in TAKEN_NAMESPACES:
        yield Fault(("cluster", "namespace"), f"is {TAKEN_NAMESPACES[namespace]}, and the models need one of their own", "name another")
    taken = {DEFAULT_ACCOUNT: "the account that Kubernetes gives every namespace", **{name: f"model {name!r}" for name in config.models}}
    if DEFAULT_ACCOUNT in config.models:
        yield _fault(("models", DEFAULT_ACCOUNT), DEFAULT_ACCOUNT, "the account that Kubernetes gives every namespace", "the model")
    for keys, name, what in _further(config):
        if name in taken:
            yield _fault(keys, name, taken[name], "that model" if name in config.models else what)
        taken[name] = ".".join(keys)


def _further(config: StackConfig) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Key, name of the objects, and what is to get another name: of fronts and batch jobs, whose names follow from their keys."""
    for name, model in config.models.items():
        if model.front is not None:
            yield ("models", name, "front"), model.identity(name, config.cluster.namespace).front, "the model"
    for name in config.batch_jobs:
        yield ("batchJobs", name), job_account(name), "the job"


def _fault(keys: tuple[str, ...], name: str, owner: str, what: str) -> Fault:
    way_out = f"give {what} another key" + (", and its name in tritonName" if what.endswith("model") else "")
    return Fault(keys, f"its objects are named {name}, and so are those of {owner}", way_out)
