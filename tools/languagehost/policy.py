"""Runs one policy pack: `policy.py <engine> <pack>`, the SDK's `pulumi.policy` with the stack's settings made known to it.

The engine tells a pack by `ConfigureStack` which stack it judges; the SDK's pack server still looks for that in its environment, which Pulumi's own host
fills before it starts the pack. Filling it when the call comes gives rules the same `pulumi.get_stack()` and `pulumi.Config()` without a second process.
Like program.py this file stands alone.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc


def main() -> None:
    register = analyzer_pb2_grpc.add_AnalyzerServicer_to_server

    def register_with_settings(servicer: Any, server: grpc.Server) -> None:
        configure = servicer.ConfigureStack

        def configure_with_settings(request: analyzer_pb2.AnalyzerStackConfigureRequest, context: grpc.ServicerContext) -> Any:
            os.environ.update(stack_environment(request))
            return configure(request, context)

        servicer.ConfigureStack = configure_with_settings
        register(servicer, server)

    analyzer_pb2_grpc.add_AnalyzerServicer_to_server = register_with_settings  # type: ignore[assignment]  # the SDK's stub names the servicer's class
    sys.path[0] = str(Path.cwd())  # as `python -m` would set it: not this folder
    runpy.run_module("pulumi.policy", run_name="__main__")


def stack_environment(request: analyzer_pb2.AnalyzerStackConfigureRequest) -> dict[str, str]:
    """The variables that `pulumi_policy` reads before each judgement."""
    return {
        "PULUMI_PROJECT": request.project,
        "PULUMI_STACK": request.stack,
        "PULUMI_ORGANIZATION": request.organization,
        "PULUMI_DRY_RUN": "true" if request.dry_run else "false",
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.config_secret_keys)),
    }


if __name__ == "__main__":
    main()
