"""The language host's service: what the engine asks of Python, each answered in a process of its own.

A program runs in a fresh interpreter for every `Run` (an update asks twice: preview and update), so no module or global of the first run can leak into
the second; start of interpreter and SDK takes 0.3 s.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import LanguageRuntimeServicer, language_pb2, plugin_pb2

from .interpreter import HostError, Interpreter, interpreter_of, parse_environment, virtualenv_of
from .processes import Children, relay

PROGRAM = Path(__file__).with_name("program.py")
POLICY = Path(__file__).with_name("policy.py")
EXIT_REPORTED = 32


class LanguageHost(LanguageRuntimeServicer):
    """Serves `up`, `preview`, `install`, `about` and policy packs of Python projects."""

    def __init__(self, children: Children) -> None:
        self._children = children

    def Handshake(self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext) -> language_pb2.LanguageHandshakeResponse:  # noqa: ARG002, N802
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:  # noqa: ARG002, N802
        return plugin_pb2.PluginInfo()

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: ARG002, N802
        self._children.terminate()
        return empty_pb2.Empty()

    def GetRequiredPlugins(  # noqa: N802
        self,
        request: language_pb2.GetRequiredPluginsRequest,  # noqa: ARG002
        context: grpc.ServicerContext,  # noqa: ARG002
    ) -> language_pb2.GetRequiredPluginsResponse:
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(  # noqa: N802
        self,
        request: language_pb2.GetRequiredPackagesRequest,  # noqa: ARG002
        context: grpc.ServicerContext,  # noqa: ARG002
    ) -> language_pb2.GetRequiredPackagesResponse:
        """None in advance: the engine loads a provider when the first resource names it, so a stack without AWS never fetches the AWS provider."""
        return language_pb2.GetRequiredPackagesResponse()

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:  # noqa: ARG002, N802
        try:
            interpreter = _interpreter(request.info)
        except HostError as error:
            return language_pb2.RunResponse(error=str(error))
        command = [interpreter.executable, "-u", str(PROGRAM)]
        environment = interpreter.environment(os.environ)
        # Standard output and error are the host's: the engine shows them line by line as the program's own.
        child = self._children.start(lambda: subprocess.Popen(command, stdin=subprocess.PIPE, env=environment))
        try:
            child.communicate(request.SerializeToString())
        finally:
            self._children.finished(child)
        return _run_response(child.returncode)

    def RunPlugin(self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext) -> Iterator[language_pb2.RunPluginResponse]:  # noqa: N802
        try:
            interpreter = _interpreter(request.info)
        except HostError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        command = plugin_command(request, interpreter)
        environment = interpreter.environment(parse_environment(request.env) or os.environ)
        child = self._children.start(
            lambda: subprocess.Popen(
                command, cwd=request.pwd or None, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
        context.add_callback(child.terminate)  # the engine ends a plugin by cancelling this call
        try:
            for name, data in relay(child):
                yield language_pb2.RunPluginResponse(stdout=data) if name == "stdout" else language_pb2.RunPluginResponse(stderr=data)
            yield language_pb2.RunPluginResponse(exitcode=child.wait())
        finally:
            self._children.finished(child)

    def InstallDependencies(  # noqa: N802
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        for command in install_commands(request.info):
            child = self._children.start(
                lambda command=command: subprocess.Popen(  # type: ignore[misc]  # mypy infers no type for a default of a lambda
                    command, cwd=request.info.program_directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
            context.add_callback(child.terminate)
            for name, data in relay(child):
                yield (
                    language_pb2.InstallDependenciesResponse(stdout=data)
                    if name == "stdout"
                    else language_pb2.InstallDependenciesResponse(stderr=data)
                )
            code = child.wait()
            self._children.finished(child)
            if code:
                context.abort(grpc.StatusCode.INTERNAL, f"`{' '.join(command)}` ended with exit code {code}")

    def About(self, request: language_pb2.AboutRequest, context: grpc.ServicerContext) -> language_pb2.AboutResponse:  # noqa: ARG002, N802
        try:
            executable = _interpreter(request.info).executable
        except HostError:  # `pulumi about` describes; it is not the place to fail
            executable = sys.executable
        version = _output([executable, "-c", "import platform; print(platform.python_version())"]).strip()
        return language_pb2.AboutResponse(executable=executable, version=version)

    def GetProgramDependencies(  # noqa: N802
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        try:
            executable = _interpreter(request.info).executable
        except HostError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        command = [executable, "-m", "pip", "list", "--format", "json", *([] if request.transitiveDependencies else ["--not-required"])]
        packages = json.loads(_output(command) or "[]")
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=package["name"], version=package["version"]) for package in packages]
        )


def _interpreter(info: language_pb2.ProgramInfo) -> Interpreter:
    return interpreter_of(Path(info.root_directory), json_format.MessageToDict(info.options))


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _run_response(returncode: int) -> language_pb2.RunResponse:
    if returncode == 0:
        return language_pb2.RunResponse()
    if returncode == EXIT_REPORTED:
        return language_pb2.RunResponse(bail=True)
    how = f"was ended by signal {-returncode}" if returncode < 0 else f"ended with exit code {returncode}"
    return language_pb2.RunResponse(error=f"the program {how}")


def plugin_command(request: language_pb2.RunPluginRequest, interpreter: Interpreter) -> list[str]:
    """The command of a plugin: for a policy pack `policy.py <engine> <pack>`, for any other its entry point with the engine's arguments."""
    info = request.info
    if request.kind == "analyzer":
        return [interpreter.executable, "-u", str(POLICY), *request.args, info.program_directory]
    return [interpreter.executable, "-u", str(Path(info.program_directory, info.entry_point)), *request.args]


def install_commands(info: language_pb2.ProgramInfo) -> list[list[str]]:
    """Make the virtual environment where it is missing, then install requirements.txt. A list with hashes is a complete lock: pip must not resolve it again."""
    virtualenv = virtualenv_of(Path(info.root_directory), json_format.MessageToDict(info.options))
    python = str(virtualenv / "bin" / "python") if virtualenv else sys.executable
    commands = [] if Path(python).exists() else [[sys.executable, "-m", "venv", str(virtualenv)]]
    requirements = Path(info.program_directory, "requirements.txt")
    if requirements.exists():
        locked = ["--no-deps", "--require-hashes"] if "--hash=" in requirements.read_text() else []
        commands.append([python, "-m", "pip", "install", *locked, "-r", str(requirements)])
    return commands
