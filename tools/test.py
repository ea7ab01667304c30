"""Run the test tiers and say how many tests of which tier ran: `python -m tools.test check|preview|serving|e2e|bench|all`.

The tiers are the folders under tests/. A skipped test is reported and fails the run: nothing counts as passed that did not run.
"""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from components.errors import PlatformError
from tools.cli import run_main
from tools.down import down
from tools.environment import variables
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import local_target
from tools.toolchain import ensure
from tools.toolchain.debian import IMAGE_PACKAGES, ensure_packages
from tools.triton_process import serving_rootfs
from tools.up import up

BIN = REPO / ".venv" / "bin"
TEST_CLUSTER_VARIABLE = "INFERENCE_PLATFORM_TEST_CLUSTER"
FAST_TIERS = ("unit", "golden", "schema", "policy", "architecture")
OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}

STATIC_CHECKS = (
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("yaml", [str(BIN / "yamllint"), "-s", "."]),
    ("imports", [str(BIN / "lint-imports")]),
    ("schema", [str(BIN / "python"), "-m", "stacks.schema", "--check"]),
)
# One process on one core; the tests leave cores idle while they wait, and are not to wait for it.
TYPES = ["nice", "-n", "10", str(BIN / "mypy"), "."]


@dataclass
class Tally:
    """Outcomes per tier, and the commands that failed."""

    tiers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    broken: list[str] = field(default_factory=list)

    def command(self, title: str, command: list[str]) -> None:
        print(f"== {title}", flush=True)
        started = time.monotonic()
        if subprocess.run(command, cwd=REPO, check=False).returncode != 0:
            self.broken.append(title)
        print(f"== {title}: {time.monotonic() - started:.0f} s", flush=True)

    @contextmanager
    def beside(self, title: str, command: list[str]) -> Iterator[None]:
        """`command` runs beside what happens in the `with`; what it said is printed afterwards."""
        started = time.monotonic()
        with TemporaryFile("w+") as said:
            running = subprocess.Popen(command, cwd=REPO, stdout=said, stderr=subprocess.STDOUT)
            try:
                yield
            except BaseException:
                running.terminate()
                raise
            finally:
                code = running.wait()
            said.seek(0)
            print(f"== {title}\n{said.read()}== {title}: {time.monotonic() - started:.0f} s, beside the others", flush=True)
        if code != 0:
            self.broken.append(title)

    def pytest(self, title: str, folders: tuple[str, ...], *flags: str) -> None:
        with TemporaryDirectory() as folder:
            report = Path(folder) / "junit.xml"
            paths = [f"tests/{name}" for name in folders]
            self.command(title, [str(BIN / "pytest"), "-q", f"--junitxml={report}", *flags, *paths])
            if report.exists():
                self._count(report)

    def _count(self, report: Path) -> None:
        for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest wrote it a moment ago)
            # A file that could not be collected has no class name, and its path as its name.
            where = case.get("classname") or case.get("name") or "tests.unknown"
            tier = where.removeprefix("tests").strip("./").replace("/", ".").split(".")[0]
            outcome = next((OUTCOMES[child.tag] for child in case if child.tag in OUTCOMES), "passed")
            self.tiers[tier][outcome] += 1

    def close(self) -> int:
        """Print the table and the closing line; the exit code."""
        total: Counter[str] = Counter()
        for tier, outcomes in self.tiers.items():
            print(f"  {tier:14} {outcomes['passed']:5} passed {outcomes['failed']:4} failed {outcomes['skipped']:4} skipped")
            total += outcomes
        if self.broken:
            print(f"failed: {', '.join(self.broken)}")
        failed = total["failed"] + (1 if self.broken and not total["failed"] else 0)
        print(f"{total['passed']} passed, {failed} failed, {total['skipped']} skipped")
        return 1 if self.broken or failed or total["skipped"] else 0


def check(tally: Tally) -> None:
    with tally.beside("types", TYPES):
        for title, command in STATIC_CHECKS:
            tally.command(title, command)
        tally.pytest("fast tests", FAST_TIERS, "-n", "2")


def toolchain(_tally: Tally) -> None:
    """First of all: a build of half an hour belongs into no test's time limit."""
    ensure()


def preview(tally: Tally) -> None:
    tally.pytest("preview", ("preview",), "-m", "preview")


def serving(tally: Tally) -> None:
    """The image first: its build belongs into no test's time limit either."""
    ensure_packages(IMAGE_PACKAGES)
    serving_rootfs()
    tally.pytest("serving", ("serving",), "-m", "serving")


def e2e(tally: Tally) -> None:
    on_platform(tally, lambda: tally.pytest("e2e", ("e2e",), "-m", "e2e"))


def bench_serving(tally: Tally) -> None:
    _bench(tally, "serving")


def bench_platform(tally: Tally) -> None:
    on_platform(tally, lambda: _bench(tally, "platform"))


def _bench(tally: Tally, part: str) -> None:
    tally.command(f"bench {part}", [str(BIN / "python"), "-m", "tools.bench", "--part", part])


def on_platform(tally: Tally, work: Callable[[], None]) -> None:
    """Do `work` on a platform of the tests' own, gone afterwards: a person's cluster is never touched. KEEP=1 leaves it for a look."""
    target = local_target(os.environ.get(TEST_CLUSTER_VARIABLE) or "test")
    began = time.monotonic()
    try:
        up(target)
        print(f"== platform up: {time.monotonic() - began:.0f} s", flush=True)
        os.environ.update(variables(target, ensure()))
        work()
    except (ToolError, PlatformError) as error:
        print(f"error: {error}", file=sys.stderr)
        tally.broken.append("platform up")
    finally:
        if not os.environ.get("KEEP"):
            down(target)


STAGES: dict[str, tuple[Callable[[Tally], None], ...]] = {
    "check": (check,),
    "preview": (toolchain, preview),
    "serving": (serving,),
    "e2e": (e2e,),
    "bench": (bench_serving, bench_platform),
    "bench-serving": (bench_serving,),
    "bench-platform": (bench_platform,),
    "all": (toolchain, check, preview, serving, e2e),
}


def main() -> int:
    chosen = sys.argv[1] if len(sys.argv) > 1 else "all"
    if chosen not in STAGES:
        print(f"unknown stage {chosen!r}; one of {', '.join(STAGES)}", file=sys.stderr)
        return 2
    tally = Tally()
    for stage in STAGES[chosen]:
        stage(tally)
    return tally.close()


if __name__ == "__main__":
    sys.exit(run_main(main))
