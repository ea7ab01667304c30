"""Runs one Pulumi program in an interpreter of its own.

The host starts this file with the project's Python and sends the serialized `RunRequest` on standard input. It stands alone (no import of this
package), because the project's virtual environment holds the SDK but not these tools.
Exit code 0: done; 32: failed and already reported to the engine (the code Pulumi's hosts agree on); anything else: the program's own exit code.
"""

import asyncio
import logging
import os
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pulumi
from pulumi.runtime.proto import language_pb2
from pulumi.runtime.settings import reset_options

EXIT_REPORTED = 32
# The SDK waits for the engine on threads: Pulumi's own host gives it four per parallel resource.
THREADS_PER_RESOURCE = 4


def main() -> int:
    request = language_pb2.RunRequest.FromString(sys.stdin.buffer.read())
    program = Path(request.info.program_directory, request.info.entry_point)
    os.chdir(request.pwd or request.info.program_directory)
    sys.path[0] = str(program if program.is_dir() else program.parent)
    sys.argv = [str(program), *request.args[1:]]
    _configure(request)
    # Tasks that fail because the engine went away are reported below; asyncio's own notes on them only confuse.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    return _run(str(program), max(request.parallel, 1) * THREADS_PER_RESOURCE)


def _configure(request: language_pb2.RunRequest) -> None:
    reset_options(
        project=request.project,
        stack=request.stack,
        root_directory=request.info.root_directory,
        parallel=request.parallel,
        engine_address=request.args[0] if request.args else "",
        monitor_address=request.monitor_address,
        preview=request.dryRun,
        organization=request.organization or "organization",
    )
    pulumi.runtime.set_all_config(dict(request.config), list(request.configSecretKeys))


def _run(program: str, threads: int) -> int:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=threads))
    loop.set_exception_handler(_stop_when_engine_is_gone)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _execute(program)))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:  # else the engine is shutting down and knows why
            pulumi.log.error(f"RPC error: {error.details()}")
    except Exception as error:  # noqa: BLE001  whatever the program raises belongs in front of its author
        pulumi.log.error("Program failed with an unhandled exception:\n" + _traceback(error))
    else:
        return 0
    finally:
        _close(loop)
    return EXIT_REPORTED


def _execute(program: str) -> None:
    runpy.run_path(program, run_name="__main__")


def _stop_when_engine_is_gone(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(context.get("exception"), grpc.RpcError):
        loop.stop()
    else:
        loop.default_exception_handler(context)


def _traceback(error: Exception) -> str:
    """The traceback from the program's first frame on: what lies above it is this file, runpy and the SDK."""
    frames = error.__traceback__
    while frames and not frames.tb_frame.f_code.co_filename.startswith("<frozen runpy>"):
        frames = frames.tb_next
    while frames and frames.tb_frame.f_code.co_filename.startswith("<frozen runpy>"):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what is still waiting, so that no "Task was destroyed but it is pending" follows the real message."""
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        loop.run_until_complete(asyncio.wait(pending))
    loop.close()
    sys.stdout.flush()
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
