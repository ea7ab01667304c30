"""What a person says about a batch job: a model, where its inputs lie, where the answers go."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.object_store import BUCKET, FOLDER, FOLDER_MAX, OBJECT_NAME, ObjectStoreAccessSpec
from components.core.spec import Spec

# Python, gRPC, numpy and boto3 as they stand, with room for the listing of some 100,000 items.
BASE_MIB = 256
# Contents, tensor and message of a request in flight.
COPIES = 3


class VolumePlaceSpec(Spec):
    """A folder of a volume that exists."""

    kind: Literal["volume"]
    claim: Annotated[str, Field(pattern=OBJECT_NAME, description="PersistentVolumeClaim in the namespace of the models.")]
    path: Annotated[str, Field(pattern=FOLDER, min_length=1, max_length=FOLDER_MAX, description="Folder in the volume.")]


class ObjectStorePlaceSpec(Spec):
    """A prefix of a bucket with the S3 API; for answers, of a store with conditional writes."""

    kind: Literal["objectStore"]
    bucket: Annotated[str, Field(pattern=BUCKET)]
    prefix: Annotated[str, Field(pattern=FOLDER, min_length=1, max_length=FOLDER_MAX, description="Folder in the bucket.")]


PlaceSpec = Annotated[VolumePlaceSpec | ObjectStorePlaceSpec, Field(discriminator="kind")]


class BatchJobSpec(Spec):
    """One run over the inputs; a change of anything here is a new Job that goes on from what the output holds."""

    model: Annotated[str, Field(description="Model of this stack, by its key in models; asked through the gateway, so that its weights hold.")]
    input: PlaceSpec
    output: PlaceSpec
    object_store: Annotated[
        ObjectStoreAccessSpec | None,
        Field(description="Of the places of kind objectStore; absent: AWS with the role of EKS Pod Identity or of the node."),
    ] = None
    shards: Annotated[int, Field(ge=1, le=1_000, description="Parts the inputs are divided into, one pod each; an output keeps the number.")] = 1
    parallelism: Annotated[int, Field(ge=1, le=1_000, description="Pods at a time, at most one for each shard.")] = 1
    in_flight: Annotated[int, Field(ge=1, le=256, description="Requests at a time, for each pod.")] = 4
    changed: Annotated[Literal["refuse", "keep", "redo"], Field(description="Answered inputs that changed or are gone since.")] = "refuse"
    retry_failed: Annotated[bool, Field(description="Whether items whose record is an error are asked about again.")] = False
    retries: Annotated[int, Field(ge=0, le=100, description="Pods of a shard that may fail and be replaced.")] = 6
    keep_seconds: Annotated[int, Field(ge=60, le=2_592_000, description="How long the finished Job and its log stay; a week by default.")] = 604_800
    cpu_request: Annotated[float, Field(ge=0.001, le=64, description="CPU cores reserved.")] = 0.1
    cpu_limit: Annotated[float, Field(ge=0.001, le=64, description="CPU cores at most.")] = 1.0
    memory_mib: Annotated[int, Field(ge=BASE_MIB, le=1_048_576, description="Memory reserved and at most, in MiB.")] = 512

    @model_validator(mode="after")
    def _pods_have_work(self) -> Self:
        if self.parallelism > self.shards:
            raise ValueError(
                f"parallelism {self.parallelism} is above shards {self.shards}: a pod works on one shard; raise shards or lower parallelism"
            )
        return self

    @model_validator(mode="after")
    def _limits_are_in_order(self) -> Self:
        if self.cpu_request > self.cpu_limit:
            raise ValueError(f"cpuRequest {self.cpu_request:g} is above cpuLimit {self.cpu_limit:g}")
        return self

    @model_validator(mode="after")
    def _places_are_apart(self) -> Self:
        if self.object_store is not None and "objectStore" not in {self.input.kind, self.output.kind}:
            raise ValueError("objectStore says how a store is reached, and neither input nor output lies in one; remove it")
        one, other = (f"{place_of(place)}/" for place in (self.input, self.output))
        if one.startswith(other) or other.startswith(one):
            raise ValueError(
                f"input {one} and output {other} lie inside each other: answers would be taken for inputs; name an output beside the input"
            )
        return self


def memory_mib(job: BatchJobSpec, max_request_mib: int) -> int:
    """What a pod needs, in MiB, when a request to its model has at most `max_request_mib`."""
    return BASE_MIB + COPIES * job.in_flight * max_request_mib


def place_of(place: VolumePlaceSpec | ObjectStorePlaceSpec) -> str:
    """Where a place is, as one text."""
    return f"s3://{place.bucket}/{place.prefix}" if isinstance(place, ObjectStorePlaceSpec) else f"{place.claim}:{place.path}"
