"""No two parts of a stack make objects of one name."""

from typing import Any

import pytest

from tests.documents import changed, document
from tests.unit.stacks.test_loader import loaded, refusal

MAGIKA = {"version": 1, "tritonName": "magika", "slo": {"p99Ms": 200}}
JOB = {"model": "magika", "input": {"kind": "volume", "claim": "files", "path": "in"}, "output": {"kind": "volume", "claim": "files", "path": "out"}}


def models(**more: dict[str, Any]) -> dict[str, Any]:
    return changed(
        "models", {**document()["inference-platform:models"], **{name.replace("_", "-"): {**MAGIKA, **keys} for name, keys in more.items()}}
    )


def test_a_job_whose_account_a_model_has_is_refused() -> None:
    """With a role for the job's store, the model's pods would get it."""
    config = models(nightly_batch={})
    config["inference-platform:batchJobs"] = {"nightly": JOB}
    assert "batchJobs.nightly: its objects are named nightly-batch, and so are those of model 'nightly-batch'" in refusal(config)
    config["inference-platform:batchJobs"] = {"daily": JOB}
    assert set(loaded(config).batch_jobs) == {"daily"}


def test_a_front_whose_objects_a_model_has_is_refused_whichever_stands_first() -> None:
    for config in (models(a={"front": {}}, a_front={}), models(a_front={}, a={"front": {}})):
        text = refusal(config)
        assert "models.a.front: its objects are named a-front, and so are those of model 'a-front'" in text
        assert "give that model another key, and its name in tritonName" in text


def test_a_model_that_would_take_over_the_namespaces_own_account_is_refused() -> None:
    assert "models.default: its objects are named default, and so are those of the account that Kubernetes gives" in refusal(models(default={}))


@pytest.mark.parametrize("namespace", ["default", "kube-system", "istio-system", "inference-gateway"])
def test_a_namespace_that_belongs_to_others_is_refused(namespace: str) -> None:
    assert f'cluster.namespace = "{namespace}": is ' in refusal(changed("cluster.namespace", namespace))


def test_names_that_only_look_alike_are_none_of_a_kind() -> None:
    """Deployments, Services, accounts and rules of these differ."""
    assert len(loaded(models(magika_v1={}, magika_v1_v1={}, magika_batch={})).models) == 4
