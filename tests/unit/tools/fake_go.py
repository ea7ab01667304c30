"""A stand-in for the Go compiler: a script that answers `go version`, `go list` and `go build` as a test tells it to."""

from pathlib import Path

SCRIPT = """#!/bin/sh
echo "$*" >> "{calls}"
case "$1" in
version) echo "go version go{version} linux/amd64";;
list) echo "go: downloading example.test/dep v1.0.0" >&2; echo example.test/dep; echo example.test/tool;;
build) {build}
  for last; do case "$previous" in -o) out=$last;; esac; previous=$last; done
  echo example.test/dep >&2; echo example.test/tool >&2
  echo binary > "$out/tool";;
esac
"""


def write_go(folder: Path, *, version: str = "1.99.0", build: str = "") -> Path:
    """Write the script `go` into `folder`; `build` is shell that runs first in `go build`. Returns the file that lists the calls."""
    calls = folder / "calls"
    calls.touch()
    script = folder / "go"
    script.write_text(SCRIPT.format(calls=calls, version=version, build=build))
    script.chmod(0o755)
    return calls


def builds(calls: Path) -> int:
    return sum(line.startswith("build") for line in calls.read_text().splitlines())
