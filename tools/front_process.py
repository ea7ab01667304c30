"""The HTTP front as a process of its own, on free ports of the loopback, before a Triton that is there already."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from components.core.front import FrontLimitsSpec
from serving.contract import FRONT_READY_PATH
from serving.front.settings import FrontSettingsSpec, ModelTargetSpec
from tools.errors import ToolError
from tools.paths import REPO
from tools.triton_process import free_ports

STOP_SECONDS = 30


class FrontProcess:
    """A running front: `with FrontProcess(model, limits) as front: front.wait_ready()`. `log` has its access lines and what it says on standard error."""

    def __init__(self, model: ModelTargetSpec, limits: FrontLimitsSpec | None = None, **settings: Any) -> None:
        self.port, self.metrics_port = free_ports(2)
        more = {"p99_ms": 200.0, "body_memory_mib": 256, "drain_seconds": 1.0, **settings}
        self._settings = FrontSettingsSpec(model=model, limits=limits or FrontLimitsSpec(), port=self.port, metrics_port=self.metrics_port, **more)
        self._folder = TemporaryDirectory()
        self.log = Path(self._folder.name) / "front.log"
        self._process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def metrics(self) -> str:
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    def __enter__(self) -> Self:
        file = self.log.with_name("front.json")
        file.write_text(json.dumps(self._settings.model_dump(mode="json", by_alias=True)), encoding="utf-8")
        command = [sys.executable, "-m", "serving.front", str(file)]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=REPO, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def wait_ready(self, seconds: float = 30) -> None:
        """Wait until the front says that its model is ready. Raises ToolError when it ends before, or has not in `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.is_ready():
                return
            time.sleep(0.05)
        raise ToolError(f"the front was not ready within {seconds:g} s:\n{self.log.read_text()}", "see what it says")

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}{FRONT_READY_PATH}", timeout=5).close()  # noqa: S310  our own http address
        except (urllib.error.URLError, OSError):
            return False
        return True

    def terminate(self) -> None:
        """What a kubelet does first."""
        self._process.send_signal(signal.SIGTERM)

    def wait_end(self) -> int:
        """The exit code, once it has ended. Raises subprocess.TimeoutExpired."""
        return self._process.wait(STOP_SECONDS)
