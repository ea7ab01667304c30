"""The way back: a config.pbtxt, read as Triton reads it."""

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb


def parse_config(text: str) -> pb.ModelConfig:
    """The protobuf message behind a config.pbtxt; `text_format.ParseError` when Triton could not read it either."""
    return text_format.Parse(text, pb.ModelConfig())
