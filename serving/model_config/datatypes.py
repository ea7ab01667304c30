"""Datatypes by their two names: that of the KServe protocol, which model.yaml speaks, and that of Triton's protobuf."""

from typing import cast

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_manifest import Datatype


def data_type(datatype: str) -> int:
    """The protobuf's number for a datatype of the protocol."""
    return int(pb.DataType.Value("TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"))


def datatype_of(number: int) -> Datatype:
    """The protocol's name for a datatype of the protobuf; for one that is not set, INVALID, which no Spec takes."""
    name = pb.DataType.Name(number).removeprefix("TYPE_")
    return cast("Datatype", "BYTES" if name == "STRING" else name)
