"""Labels and selectors: the one place.

Selectors are immutable, so their shape is fixed from the first day: a Deployment selects by `app.kubernetes.io/name` alone (Flagger reads one
label of that kind and rewrites it for its primary); everything that means "all pods of this model" selects by MODEL, which Flagger leaves alone.
"""

NAME = "app.kubernetes.io/name"
PART_OF = "app.kubernetes.io/part-of"
COMPONENT = "app.kubernetes.io/component"
MANAGED_BY = "app.kubernetes.io/managed-by"
MODEL = "inference-platform/model"
# Of the front's pods; they must not carry MODEL, by which the model's Service finds its servers.
FRONT = "inference-platform/front"
# Of the pods of a batch job; nothing selects by it but a person.
BATCH = "inference-platform/batch"
VERSION = "version"

PLATFORM = "inference-platform"

# Label of a namespace whose pods must meet the restricted Pod Security Standard.
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def common(component: str) -> dict[str, str]:
    """Labels every object of ours carries."""
    return {PART_OF: PLATFORM, COMPONENT: component, MANAGED_BY: "pulumi"}


def model(model_name: str) -> dict[str, str]:
    """Labels of an object that belongs to a model, whatever the version."""
    return {**common("model-server"), MODEL: model_name}


def model_version(model_name: str, deployment: str, version_label: str) -> dict[str, str]:
    """Labels of the Deployment of one model version and of its pods."""
    return {**model(model_name), NAME: deployment, VERSION: version_label}


def deployment_selector(deployment: str) -> dict[str, str]:
    return {NAME: deployment}


def model_selector(model_name: str) -> dict[str, str]:
    return {MODEL: model_name}


def front(model_name: str) -> dict[str, str]:
    """Labels of an object that belongs to the HTTP front of a model."""
    return {**common("model-front"), FRONT: model_name}


def front_selector(model_name: str) -> dict[str, str]:
    return {FRONT: model_name}


def batch(job_name: str) -> dict[str, str]:
    """Labels of an object that belongs to a batch job."""
    return {**common("batch-job"), BATCH: job_name}
