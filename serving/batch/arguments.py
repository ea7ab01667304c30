"""The command line of the batch client."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from os import environ

from components.core.command_line import CommandLine, whole_number
from serving.batch.errors import BatchError
from serving.batch.inputs import Changed, Shard

# Set by Kubernetes in the pods of a Job with completionMode Indexed.
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
OUTAGE_SECONDS = 600


def parse(words: Sequence[str] | None, description: str | None) -> argparse.Namespace:
    """The arguments, each within its bounds; ends the process with 2 and a message otherwise."""
    parser = CommandLine(prog="python -m serving.batch", description=description)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="ask about what has no record yet")
    _add_places(run)
    _add_model(run)
    _add_bounds(run)
    _add_places(commands.add_parser("check", help="verify that every input has exactly one record"))
    merge = commands.add_parser("merge", help="verify, then write all records into one file, ordered by id")
    _add_places(merge)
    merge.add_argument("--to", required=True, help="file or s3://bucket/key to write")
    arguments = parser.parse_args(words)
    if arguments.command == "run" and arguments.timeout_seconds >= arguments.outage_seconds:
        run.error(
            f"--timeout-seconds {arguments.timeout_seconds} is not below --outage-seconds {arguments.outage_seconds}: "
            "one request that times out would count as an outage; lower it, or raise the other"
        )
    return arguments


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", help="directory or s3://bucket/prefix")
    parser.add_argument("output", help="directory or s3://bucket/prefix")
    parser.add_argument("--endpoint-url", help="address of the object store (default: boto3's own)")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", type=word, required=True, help="host:port of the server's or gateway's gRPC")
    parser.add_argument("--authority", type=word, help="host by which a gateway chooses the model")
    parser.add_argument("--tls", action="store_true", help="the server speaks TLS")
    parser.add_argument("--model", type=word, required=True)
    parser.add_argument("--version", type=version, default="", help="default: the one the server or the gateway chooses")
    parser.add_argument("--outputs", type=word, nargs="+", default=[], help="names of the tensors to keep (default: all)")
    parser.add_argument("--max-batch", type=between(1, 4096), help="items in a request (default: the model's max_batch_size)")
    parser.add_argument("--priority", type=between(0, 1000), help="priority level (default: the model's lowest; 0: its default level)")
    parser.add_argument("--timeout-seconds", type=between(1, 3600), default=60, help="for one request")
    parser.add_argument(
        "--outage-seconds", type=between(1, 86_400), default=OUTAGE_SECONDS, help="refusals alone for so long end the run with code 4"
    )


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in-flight", type=between(1, 256), default=4, help="requests at a time")
    parser.add_argument("--batch-mib", type=between(1, 1024), default=16, help="largest request with several items, in MiB")
    parser.add_argument(
        "--item-mib", type=between(1, 2000), default=256, help="largest request with one item, in MiB; larger items are recorded as failed"
    )
    parser.add_argument("--part-items", type=between(1, 100_000), default=500, help="records in a part")
    parser.add_argument("--part-seconds", type=between(1, 3600), default=10, help="longest time until a record is stored")
    parser.add_argument("--max-failed", type=between(0, 10_000_000), default=1_000, help="more failed items end the run")
    parser.add_argument("--retry-failed", action="store_true", help="ask again about items whose record is an error")
    parser.add_argument("--changed", choices=[str(each) for each in Changed], default="refuse", help="answered inputs that changed or are gone")
    parser.add_argument(
        "--shard", type=shard, default=Shard(), help=f"INDEX/COUNT; /COUNT takes the index from {INDEX_VARIABLE} (default: no shards)"
    )


def between(least: int, most: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def number(text: str) -> int:
        try:
            value = whole_number(text)
        except argparse.ArgumentTypeError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return value

    return number


def word(text: str) -> str:
    """What a message of gRPC, and a header of it, can hold."""
    if not text.isascii() or not text.isprintable() or " " in text or not text:
        raise argparse.ArgumentTypeError(f"{text!r} is no name: printable ASCII without spaces")
    return text


def version(text: str) -> str:
    """A version as Triton writes it."""
    if text and not re.fullmatch("[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no version: a whole number from 1")
    return text


def shard(text: str, variables: Mapping[str, str] = environ) -> Shard:
    """`2/8`, or `/8` in a pod of an indexed Job."""
    index, _, count = text.partition("/")
    try:
        return Shard(whole_number(index or variables[INDEX_VARIABLE]), whole_number(count))
    except (argparse.ArgumentTypeError, KeyError, BatchError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no shard: write INDEX/COUNT, or /COUNT where {INDEX_VARIABLE} is set") from error
