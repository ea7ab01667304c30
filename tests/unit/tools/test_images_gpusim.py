"""The GPU simulator's own tests, which are Go's."""

import os
import subprocess

from tools.toolchain.catalog import BUILD_ENV, GOMOD
from tools.toolchain.go import ensure_go

# Tests run under another home; Go's caches are under the real one.
HOME = os.environ.get("HOME", "/root")


def test_the_gpu_simulator_registers_allocates_and_reports_health():
    environment = {**os.environ, **BUILD_ENV, "HOME": HOME}
    done = subprocess.run([ensure_go(), "test", "./gpusim"], cwd=GOMOD / "platform", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
