"""How pods reach an object store with the S3 API, as a person says it, and as it stands in a container."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from components.core.spec import Spec

# Names of Kubernetes objects: a DNS subdomain (Kubernetes documentation, "Object Names and IDs").
OBJECT_NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
FOLDER = r"^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$"
# A key has at most 1,024 bytes (Amazon S3 User Guide, "Naming Amazon S3 objects"): half is left for model, version and file.
FOLDER_MAX = 512
BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
# Variables of a Secret, and whether it may lack them.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": False, "AWS_SECRET_ACCESS_KEY": False, "AWS_SESSION_TOKEN": True}


class ObjectStoreAccessSpec(Spec):
    """Credentials are no part of the stack file: the service account's role, a Secret, or neither for the role of EKS Pod Identity or of the node."""

    endpoint: Annotated[
        str | None, Field(pattern=r"^https?://[^\s/@]+/?$", max_length=2048, description="Address of the store, without credentials; absent: AWS.")
    ] = None
    region: Annotated[str | None, Field(pattern=r"^[a-z0-9-]+$", max_length=63, description="Region of the bucket; absent: that of the role.")] = None
    secret: Annotated[
        str | None,
        Field(pattern=OBJECT_NAME, description="Secret in the namespace of the models with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."),
    ] = None
    service_account_annotations: Annotated[
        dict[str, str],
        Field(default_factory=dict, description="Of the service account, such as eks.amazonaws.com/role-arn: a role in place of a Secret."),
    ]

    @model_validator(mode="after")
    def _credentials_come_from_one_place(self) -> Self:
        if self.secret is not None and self.service_account_annotations:
            raise ValueError(f"secret {self.secret!r} would win over the role in serviceAccountAnnotations; keep one of them")
        return self


def credential_variables(secret: str | None) -> list[dict[str, Any]]:
    """Environment of a container that takes its credentials from a Secret; none without one."""
    if secret is None:
        return []
    return [
        {"name": key, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, **({"optional": True} if optional else {})}}}
        for key, optional in CREDENTIALS.items()
    ]
