"""A process that is surely the one we started: a number alone may be another program's by now."""

import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.files import write_atomically

# include/linux/sched.h; in field 9 of /proc/<pid>/stat.
_PF_EXITING = 0x4


@dataclass(frozen=True)
class ProcessIdentity:
    """A process number and its start time (clock ticks since boot), which together never name two processes of one boot."""

    pid: int
    start_time: int

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """None when no such process runs; one that is ending does not run, though the first of a process namespace takes a while to be gone."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The command, in parentheses, may hold blanks: fields are counted behind it.
        fields = stat.rpartition(")")[2].split()
        ending = fields[0] in {"Z", "X"} or int(fields[6]) & _PF_EXITING
        return None if ending else cls(pid, int(fields[19]))

    @classmethod
    def read(cls, file: Path) -> "ProcessIdentity | None":
        """The process recorded in `file` while it runs, else None."""
        try:
            recorded = cls(**json.loads(file.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return recorded if recorded.alive() else None

    def write(self, file: Path) -> None:
        write_atomically(file, json.dumps(asdict(self)))

    def alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self

    def started_at(self) -> float:
        """When it started, in seconds since the epoch."""
        boot = next(line.split()[1] for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        return int(boot) + self.start_time / os.sysconf("SC_CLK_TCK")

    def signal(self, number: signal.Signals) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def wait(self, seconds: float) -> bool:
        """True as soon as the process has ended, False when it has not within `seconds`."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True
