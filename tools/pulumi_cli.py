"""The pulumi command line on one stack of this project, as the tools and the end-to-end tests drive it."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import ToolError
from tools.paths import REPO
from tools.pulumi_events import changed_resources, lines_of, said


@dataclass(frozen=True)
class UpdateResult:
    """What one `pulumi up` or `pulumi preview` did: exit code, the changed resources and the text a person would have read."""

    returncode: int
    changes: tuple[tuple[str, str], ...]
    log: str

    @property
    def ok(self) -> bool:
        return self.returncode == 0


@dataclass(frozen=True)
class PulumiStack:
    """Stack `stack` of the project at `project`; `env` holds backend, passphrase, kubeconfig and assets, `config_file` replaces the stack's own file."""

    env: Mapping[str, str]
    stack: str = "local"
    project: Path = REPO
    config_file: Path | None = None
    pulumi: str = "pulumi"

    def command(self, *arguments: str) -> list[str]:
        config = (
            ["--config-file", str(self.config_file)] if self.config_file and arguments[0] in {"up", "preview", "refresh", "destroy", "config"} else []
        )
        flags = ["--stack", self.stack, "--non-interactive", *config]
        # What follows `--` is no flag, whatever it begins with.
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return [self.pulumi, *arguments[:end], *flags, *arguments[end:]]

    def run(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run to its end and return output and exit code; raises nothing on a non-zero exit."""
        return subprocess.run(
            self.command(*arguments), cwd=self.project, env=self._environment(), capture_output=True, text=True, timeout=timeout, check=False
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start in a process group of its own, so that a test can interrupt it as Ctrl-C would."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.project,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def check(self, *arguments: str, timeout: float = 900) -> str:
        """Run and return stdout; raises ToolError with the output when it fails."""
        done = self.run(*arguments, timeout=timeout)
        if done.returncode != 0:
            raise ToolError(f"`pulumi {' '.join(arguments)}` failed:\n{done.stdout}{done.stderr}".rstrip(), "the message above says what to change")
        return done.stdout

    def ensure(self) -> None:
        """Create the stack in the backend unless it is there, and drop the locks of runs that were killed."""
        backend = self.env.get("PULUMI_BACKEND_URL", "")
        if backend.startswith("file://"):
            Path(backend.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
        names = {entry["name"] for entry in json.loads(self.check_global("stack", "ls", "--json"))}
        if self.stack not in names:
            self.check_global("stack", "init", self.stack)
        if dead_locks(Path(backend.removeprefix("file://"))):
            self.check("cancel", "--yes")

    def check_global(self, *arguments: str) -> str:
        """A command that takes no --stack."""
        done = subprocess.run(
            [self.pulumi, *arguments, "--non-interactive"], cwd=self.project, env=self._environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ToolError(f"`pulumi {' '.join(arguments)}` failed:\n{done.stdout}{done.stderr}".rstrip(), "the message above says what to change")
        return done.stdout

    def deploy(self) -> None:
        """`pulumi up --refresh`: what was deleted or changed by hand, or lost to a kill, is repaired too. Raises ToolError when it fails."""
        self._visibly("up", "--refresh")

    def destroy(self) -> None:
        """`pulumi destroy`. Raises ToolError when it fails."""
        self._visibly("destroy")

    def _visibly(self, operation: str, *flags: str) -> None:
        """With Pulumi's own display on a terminal, else with a line per change; both say why it failed.

        An interrupt reaches Pulumi too, which ends what it is at and records it: nobody may kill it meanwhile.
        """
        terminal = sys.stdout.isatty()
        command = self.command(operation, "--yes", "--skip-preview", *flags, *(() if terminal else ("--json",)))
        if terminal:
            command.remove("--non-interactive")
        output = None if terminal else subprocess.PIPE
        with subprocess.Popen(command, cwd=self.project, env=self._environment(), stdout=output, text=True) as running:
            interrupted = patiently(running)
        if interrupted:
            raise KeyboardInterrupt
        if running.returncode != 0:
            raise ToolError(f"`pulumi {operation}` failed", "the lines above say why; the same command goes on from here")

    def set_config(self, path: str, value: str) -> None:
        """`pulumi config set --path <path> <value>`, as a person types it; a negative value needs the `--`."""
        self.check("config", "set", "--path", "--", path, value)

    def remove_config(self, path: str) -> None:
        """`pulumi config rm --path <path>`: the key and all below it."""
        self.check("config", "rm", "--path", "--", path)

    def outputs(self) -> dict[str, Any]:
        outputs: dict[str, Any] = json.loads(self.check("stack", "output", "--json"))
        return outputs

    def up(self, *flags: str) -> UpdateResult:
        return self._update("up", "--yes", "--skip-preview", *flags)

    def preview(self, *flags: str) -> UpdateResult:
        return self._update("preview", *flags)

    def _update(self, *arguments: str) -> UpdateResult:
        """Run with the engine's event stream as output and count what changed."""
        done = self.run(*arguments, "--json")
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return UpdateResult(done.returncode, changed_resources(events), said(events) + done.stderr)

    def _environment(self) -> dict[str, str]:
        # Without the second, `preview --json` prints one digest in place of the event stream that `up --json` prints.
        fixed = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true"}
        return {**os.environ, **self.env, **fixed}


def patiently(running: "subprocess.Popen[str]") -> bool:
    """Print what an update says until it has ended; whether it was interrupted on the way."""
    interrupted = False
    while True:
        try:
            for line in running.stdout or ():
                for text in lines_of(line):
                    print(f"      {text}", flush=True)
            running.wait()
        except KeyboardInterrupt:
            interrupted = True
        else:
            return interrupted


def dead_locks(backend: Path) -> list[Path]:
    """Locks of the file backend whose owner ran on this machine and is gone; a lock of another machine is never judged."""
    return [lock for lock in backend.glob(".pulumi/locks/**/*.json") if _owner_is_gone(lock)]


def _owner_is_gone(file: Path) -> bool:
    try:
        lock = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return False  # its owner is taking it away, or has just begun to write it
    return lock.get("hostname") == socket.gethostname() and not Path(f"/proc/{lock.get('pid')}").exists()
