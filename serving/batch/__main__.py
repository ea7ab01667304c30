"""Ask a model about every file of a directory or every object of a prefix, once, and write the answers as JSON Lines.

A run that was killed, stopped or lost its server goes on when the same command is given again.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum

from components.errors import INTERRUPTED, PlatformError, while_read
from serving.batch.arguments import parse
from serving.batch.asking import Asker, Backoff
from serving.batch.errors import LockError, OutageError, StoreOutageError
from serving.batch.inputs import Changed, Shard, fix_settings, open_items
from serving.batch.ledger import read_ledger
from serving.batch.model import Model, Wanted, connected_model
from serving.batch.places import file_place, input_and_output
from serving.batch.progress import Progress
from serving.batch.run import Limits, Run
from serving.batch.storage import Lock, Storage
from serving.batch.verdict import check, merged


class Exit(IntEnum):
    """Exit codes; 1 is Python's own for a crash, argparse has 2, and a process that a signal stopped has 128 and its number."""

    DONE = 0
    ITEMS_FAILED = 3
    NO_SERVER = 4
    IN_USE = 5
    REFUSED = 6
    NO_STORE = 7


# By kind of error; any other PlatformError is REFUSED.
LATER: dict[type[PlatformError], Exit] = {OutageError: Exit.NO_SERVER, LockError: Exit.IN_USE, StoreOutageError: Exit.NO_STORE}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(text: str) -> None:
    """To standard output, which unlike standard error refuses what its encoding lacks: a file name need not be text."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


async def run(arguments: argparse.Namespace) -> int:
    """Exit code of `run`."""
    source, output = input_and_output(arguments.input, arguments.output, arguments.endpoint_url)
    wanted = Wanted(
        model=arguments.model,
        version=arguments.version,
        outputs=tuple(arguments.outputs),
        max_batch=arguments.max_batch,
        priority=arguments.priority,
        timeout_seconds=arguments.timeout_seconds,
    )
    shard: Shard = arguments.shard
    async with connected_model(arguments.address, arguments.authority, wanted, tls=arguments.tls) as model:
        settings = {"model": wanted.model, "version": wanted.version, "outputs": list(model.outputs), "shards": shard.count}
        await asyncio.to_thread(fix_settings, output, settings)
        place_of_shard = output.below(shard.folder)
        with place_of_shard.lock() as lock:
            return await ask_all(arguments, model, source, place_of_shard, lock)


async def ask_all(arguments: argparse.Namespace, model: Model, source: Storage, output: Storage, lock: Lock) -> int:
    """Exit code after asking about what has no record yet."""
    ledger = read_ledger(output, repair=True)
    for part in ledger.repaired:
        say(f"{output}: the last line of {part} was torn and is gone; its input is asked about again")
    items = arguments.shard.own(source.items())
    todo = open_items(items, ledger, Changed(arguments.changed), retry_failed=arguments.retry_failed)
    progress = Progress(total=len(items), before=len(items) - len(todo))
    limits = Limits(
        max_batch=model.max_batch,
        in_flight=arguments.in_flight,
        batch_mib=arguments.batch_mib,
        item_mib=arguments.item_mib,
        part_items=arguments.part_items,
        part_seconds=arguments.part_seconds,
        max_failed=arguments.max_failed,
    )
    backoff = Backoff(outage_seconds=arguments.outage_seconds)
    work = Run(source, ledger, lock, Asker(model, backoff), limits, progress)
    signalled: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        say(f"{number.name}: what is in flight is finished and stored")
        signalled.append(number)
        work.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    say(f"{progress.line()}; batches of {model.max_batch}, priority {model.priority or 'default'}")
    whole = await work.do(todo, say)
    print(json.dumps({**progress.summary(), "failedInOutput": sum(entry.failed for entry in ledger.entries.values())}))
    if not whole:
        return 128 + signalled[0]
    return Exit.ITEMS_FAILED if any(entry.failed for entry in ledger.entries.values()) else Exit.DONE


def verify(arguments: argparse.Namespace) -> int:
    """Exit code of `check`."""
    source, output = input_and_output(arguments.input, arguments.output, arguments.endpoint_url)
    verdict = check(source.items(), output)
    show(str(verdict))
    return Exit.DONE if verdict.complete else Exit.REFUSED


def merge(arguments: argparse.Namespace) -> int:
    """Exit code of `merge`: writes the records only when the output is whole."""
    source, output = input_and_output(arguments.input, arguments.output, arguments.endpoint_url)
    target, name = file_place(arguments.to, arguments.endpoint_url, beside=(source, output))
    verdict = check(source.items(), output)
    print(verdict, file=sys.stderr)
    if not verdict.complete:
        return Exit.REFUSED
    target.replace(name, merged(output))
    return Exit.DONE


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words, __doc__)
    try:
        match arguments.command:
            case "run":
                return asyncio.run(run(arguments))
            case "check":
                return verify(arguments)
            case _:
                return merge(arguments)
    except PlatformError as error:
        say(f"error: {error}")
        return LATER.get(type(error), Exit.REFUSED)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(while_read(main))
