"""The serving image's own tritonserver without a cluster: its root file system, its user, its start command, on free ports of the loopback.

The server lives in a mount and process namespace of its own, in which it is process 1 as in a pod: when it ends, or when whoever started it ends,
however that happens, nothing is left, not a process, not a mount, not a byte of shared memory.
"""

import itertools
import os
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from components.inference.pod_manifest import START
from serving.contract import GROUP_ID, READY_PATH, REPOSITORY_PATH, USER_ID
from tools.errors import ToolError
from tools.images import ensure_images
from tools.images.contained import contained
from tools.images.rootfs import RootFs, ensure_rootfs
from tools.paths import cache_dir

LOG_TAIL_LINES = 30
STOP_SECONDS = 40
READABLE = stat.S_IROTH | stat.S_IXOTH
# Arguments: root, repository ("" for the image's own), MiB of shared memory, then the command. As in a pod, only /tmp and /dev/shm can be written.
ENTER = f"""
set -e
root=$1 repository=$2 shm=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir "$root/dev/shm"
mount -t tmpfs -o "mode=1777,size=${{shm}}m" tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
if [ -n "$repository" ]; then mount --bind "$repository" "$root{REPOSITORY_PATH}"; mount -o remount,ro,bind "$root{REPOSITORY_PATH}"; fi
mount -o remount,ro,bind "$root"
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
exec chroot "$root" setpriv --reuid={USER_ID} --regid={GROUP_ID} --clear-groups --pdeathsig KILL "$@"
"""
# Arguments: a control group, then the command.
JOIN = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
_numbers = itertools.count(1)


class TritonError(ToolError):
    """The server ended or did not become ready; the message has the end of its log."""


class TritonProcess:
    """A running server: `with TritonProcess(repository=folder, arguments=["--model-control-mode=explicit"]) as triton: triton.wait_ready()`.

    Without `repository` it serves the image's own. `group` is a control group for all its processes. `arguments` are added to those that name the repository and the ports. The log stays when the
    server is gone: in `log`, else in the cache. The thread that starts it must live as long as it shall: the kernel ends it with that thread.
    """

    def __init__(
        self,
        *,
        repository: Path | None = None,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        shm_mib: int = 1024,
        group: Path | None = None,
        log: Path | None = None,
    ) -> None:
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        self.log = log or cache_dir() / "logs" / f"triton-{os.getpid()}-{next(_numbers)}.log"
        self._repository = _checked(repository)
        self._arguments = tuple(arguments)
        self._environment = environment or {}
        self._shm_mib = shm_mib
        self._group = group
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def http(self) -> str:
        """Address of the HTTP endpoint as a URL without a path."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc(self) -> str:
        """Address of the gRPC endpoint, as a client takes it."""
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def metrics(self) -> str:
        """Address of the metrics."""
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server and return at once; the image is built and unpacked before where that was not done yet. Raises ToolError."""
        rootfs = serving_rootfs()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self.command(rootfs),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def command(self, rootfs: RootFs) -> list[str]:
        """The whole command line: killed with its caller, alone in its namespaces, as the image's user."""
        repository = "" if self._repository is None else str(self._repository)
        ports = [f"--{kind}-port={port}" for kind, port in (("http", self.http_port), ("grpc", self.grpc_port), ("metrics", self.metrics_port))]
        addresses = ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"]
        environment = [f"{name}={value}" for name, value in {**rootfs.environment, **self._environment}.items()]
        server = [
            "env",
            "--ignore-environment",
            *environment,
            *START,
            f"--model-repository={REPOSITORY_PATH}",
            "--disable-auto-complete-config",
            *ports,
            *addresses,
            *self._arguments,
        ]
        join = [] if self._group is None else ["/bin/sh", "-c", JOIN, "join", str(self._group)]
        inner = [*join, "/bin/sh", "-c", ENTER, "enter", str(rootfs.path), repository, str(self._shm_mib), *server]
        return contained("unshare", "--pid", "--fork", "--kill-child=KILL", *inner)

    def wait_ready(self, seconds: float = 60, *, path: str = READY_PATH) -> None:
        """Wait until the server says 200 at `path`. Raises TritonError when it ends before, or has not in `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (code := self.returncode) is not None:
                raise TritonError(f"tritonserver ended with {code} before it was ready:\n{self.log_tail()}", f"the whole log: {self.log}")
            if self.answers(path):
                return
            time.sleep(0.05)
        raise TritonError(f"tritonserver was not ready after {seconds:g} s:\n{self.log_tail()}", f"the whole log: {self.log}")

    def answers(self, path: str = READY_PATH) -> bool:
        """Whether a GET of `path` is answered by 200."""
        try:
            urllib.request.urlopen(f"{self.http}{path}", timeout=2).close()  # noqa: S310  our own http address
        except (urllib.error.URLError, OSError):
            return False
        return True

    @property
    def returncode(self) -> int | None:
        """Exit code of the server, None while it runs."""
        return self._started.poll()

    @property
    def pid(self) -> int:
        """The server itself as this machine numbers it, for signals and /proc; ProcessLookupError when it has ended."""
        parent = self._started.pid
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
            return int(children[0])
        except (OSError, IndexError):
            raise ProcessLookupError(f"tritonserver has ended with {self.returncode}") from None

    def log_tail(self) -> str:
        """The end of the log so far."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])

    def stop(self) -> int:
        """End the server as the kubelet does, with SIGTERM: requests in flight finish. Returns its exit code; TritonError when it does not end."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)
        return self.wait_ended(STOP_SECONDS)

    def wait_ended(self, seconds: float) -> int:
        """Wait until the server ends by itself, and return its exit code; TritonError when it has not in `seconds`."""
        try:
            return self._started.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TritonError(f"tritonserver goes on after {seconds:g} s:\n{self.log_tail()}", f"the whole log: {self.log}") from None

    def kill(self) -> None:
        """End the server at once, and with it everything in its namespaces; nothing happens when it has ended."""
        if self._process is None:
            return
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            self._process.kill()
        self._process.wait()

    @property
    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise TritonError("the server was not started", "use it in a with statement, or call start()")
        return self._process


def serving_rootfs() -> RootFs:
    """The serving image of this clone, unpacked; built when it is not there."""
    return ensure_rootfs(ensure_images(_no_program, names=["triton"])["triton"])


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _no_program(name: str) -> Path:
    raise ToolError(f"the serving image holds no program {name!r} of the toolchain", "correct the recipe in tools/images/recipes.py")


def _checked(repository: Path | None) -> Path | None:
    """The absolute path. ToolError for one that the server's user could not list: to Triton it would be an empty repository."""
    if repository is None:
        return None
    if not repository.is_dir():
        raise ToolError(f"there is no model repository {repository}", "name a directory")
    if repository.stat().st_mode & READABLE != READABLE:
        raise ToolError(f"model repository {repository} is not readable by others, so the server's user cannot read it", f"chmod o+rx {repository}")
    return repository.resolve()
