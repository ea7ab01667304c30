"""Where a file of a model comes from: what model.yaml says under `source`, by kind. Every file is pinned by its SHA-256, wherever it lies."""

import re
from typing import Annotated, Literal

from pydantic import Field

from components.core.spec import Spec

# Folders too: a SavedModel is one. No name leads out of the folder it lies in.
FILE_NAME = re.compile("^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$")


class WheelSourceSpec(Spec):
    """A file inside the model's wheel."""

    kind: Literal["wheel"]
    member: Annotated[str, Field(min_length=1, description="Path inside the wheel.")]


class LocalSourceSpec(Spec):
    """A file of this repository."""

    kind: Literal["file"]
    path: Annotated[str, Field(pattern=FILE_NAME.pattern, description="Path below the folder of model.yaml.")]


class S3SourceSpec(Spec):
    """An object of an object store; endpoint, region and credentials are those of the environment (AWS_ENDPOINT_URL_S3, AWS_PROFILE, ...)."""

    kind: Literal["s3"]
    uri: Annotated[str, Field(pattern="^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.+$", description="s3://<bucket>/<key>.")]


class OciSourceSpec(Spec):
    """A layer of an OCI artefact, named by digest: a tag may move."""

    kind: Literal["oci"]
    reference: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9.-]+(:\d+)?/[a-z0-9._/-]+@sha256:[0-9a-f]{64}$", description="<registry>/<name>@sha256:<manifest digest>.")
    ]
    title: Annotated[str, Field(min_length=1, description="The layer's annotation org.opencontainers.image.title: the file's name there.")]


FileSourceSpec = Annotated[WheelSourceSpec | LocalSourceSpec | S3SourceSpec | OciSourceSpec, Field(discriminator="kind")]
