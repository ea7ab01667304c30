"""An update that is interrupted leaves nothing twice and nothing behind."""

import os
import signal
import time
from subprocess import Popen

import pytest

from tests.e2e.inventory import inventory
from tests.e2e.platform import MODEL, Platform
from tests.e2e.traffic import PROPAGATION_SECONDS
from tests.e2e.waits import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BEGIN_SECONDS = 60
END_SECONDS = 120


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_an_interrupted_update_is_completed_by_the_next_one(platform: Platform, how: signal.Signals) -> None:
    before = inventory(platform.kube)
    with platform.restored():
        # New ConfigMaps come first, then two rollouts that take seconds: the first ConfigMap says that the update is in its middle.
        platform.stack.set_config(f"models.{MODEL}.batching.maxQueueDelayMicroseconds", "100")
        running = platform.stack.start("up", "--yes", "--skip-preview")
        wait_for("the update has begun", lambda: inventory(platform.kube), lambda now: now != before, seconds=BEGIN_SECONDS)
        assert running.poll() is None, "the update was over before it could be interrupted"
        os.killpg(running.pid, how)
        output = end_of(running)
        if how is signal.SIGKILL:
            # A killed engine leaves its lock, as the next update says.
            platform.stack.check("cancel", "--yes")
        result = platform.stack.up()
        assert result.ok, f"{output}\n{result.log}"
        again = platform.stack.up()
        assert (again.ok, again.changes) == (True, ()), again.log
    time.sleep(PROPAGATION_SECONDS)
    assert inventory(platform.kube) == before


def end_of(running: Popen[str]) -> str:
    output, _ = running.communicate(timeout=END_SECONDS)
    assert running.returncode != 0
    return output
