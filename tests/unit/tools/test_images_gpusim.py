"""The GPU simulator's own tests, which are Go's."""

import os
import subprocess

import pytest

from tools.toolchain.catalog import BUILD_ENV, GOMOD
from tools.toolchain.go import find_go

# Tests run under another home; Go's caches are under the real one.
HOME = os.environ.get("HOME", "/root")


def test_the_gpu_simulator_registers_allocates_and_reports_health():
    go = find_go()
    if go is None:
        pytest.skip("no Go that the toolchain would use is on this machine")
    environment = {**os.environ, **BUILD_ENV, "HOME": HOME, "GOPROXY": "off"}
    done = subprocess.run([go, "test", "./gpusim"], cwd=GOMOD / "platform", env=environment, capture_output=True, text=True, check=False)
    if "GOPROXY=off" in done.stderr:
        pytest.skip("the Go modules are not on this machine yet; make toolchain fetches them")
    assert done.returncode == 0, done.stdout + done.stderr
