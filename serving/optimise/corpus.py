"""A labelled set out of the files of the machine it runs on, chosen by hash: the same files give the same set, whatever order they are found in."""

import hashlib
import os
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from serving.optimise.errors import OptimisationError
from serving.optimise.examples import Example, ExampleSet

SEED = "optimisation-1"
# Files without a network's worth of bytes say nothing about it; the largest bound keeps a set in memory.
SMALLEST_BYTES, LARGEST_BYTES = 64, 1_000_000
# Neighbours resemble each other: more of one folder are hardly more evidence.
PER_FOLDER = 3
# One folder in so many calibrates; whole folders, so that no near copy of a calibration file is in the evaluation.
CALIBRATION_ONE_IN = 8
# Histograms of all tensors are held in memory, and more did not move the ranges.
CALIBRATION_MAX = 200
SKIPPED_FOLDERS = {"__pycache__", ".git"}


def default_roots() -> dict[str, Path]:
    """Where files of many types lie on a machine that runs the platform: Python, its packages, Debian's files, and the toolchain's Go modules."""
    roots = {
        "stdlib": Path(sysconfig.get_path("stdlib")),
        "packages": Path(sysconfig.get_path("purelib")),
        "share": Path("/usr/share"),
        "lib": Path("/usr/lib"),
        "include": Path("/usr/include"),
        "go-modules": Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod"),
    }
    return {name: path for name, path in roots.items() if path.is_dir()}


def select(roots: Mapping[str, Path], labels: Mapping[str, frozenset[str]], per_extension: int) -> ExampleSet:
    """Up to `per_extension` different files of each extension in `labels`, at most PER_FOLDER of a folder. OptimisationError when a set stays empty."""
    candidates: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, root in sorted(roots.items()):
        for relative in _files(root):
            extension = _extension(relative)
            if extension in labels:
                candidates[extension].append((name, relative))
    seen: set[str] = set()
    chosen = [
        Example(f"{name}/{relative}", extension, content, labels[extension])
        for extension, places in sorted(candidates.items())
        for name, relative, content in _draw(roots, places, per_extension, seen)
    ]
    calibrating = [_hash(example.name.rpartition("/")[0]) % CALIBRATION_ONE_IN == 0 for example in chosen]
    sets = [[example for example, is_calibrating in zip(chosen, calibrating, strict=True) if is_calibrating is wanted] for wanted in (True, False)]
    if not all(sets):
        raise OptimisationError(
            f"{len(chosen)} files of known types under {', '.join(map(str, roots.values()))} are too few for a calibration and an evaluation set",
            hint="name roots with more files",
        )
    recipe = (
        f"up to {per_extension} different files of each extension that the model's own list of types knows, {SMALLEST_BYTES} to {LARGEST_BYTES} bytes, "
        f"at most {PER_FOLDER} of a folder, in the order of SHA-256({SEED!r} + place); one folder in {CALIBRATION_ONE_IN} calibrates (the first {CALIBRATION_MAX} files), the others judge"
    )
    calibration = sorted(sets[0], key=lambda example: _hash(example.name))[:CALIBRATION_MAX]
    return ExampleSet(recipe=recipe, calibration=calibration, evaluation=sets[1])


def _files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        yield from (str(Path(folder, name).relative_to(root)) for name in names)


def _extension(relative: str) -> str:
    stem, dot, extension = relative.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot and stem else ""


def _draw(roots: Mapping[str, Path], places: list[tuple[str, str]], count: int, seen: set[str]) -> Iterator[tuple[str, str, bytes]]:
    """Until `count` are found: files whose content no other example has."""
    per_folder: Counter[str] = Counter()
    drawn = 0
    for name, relative in sorted(places, key=lambda place: _hash("/".join(place))):
        folder = f"{name}/{relative.rpartition('/')[0]}"
        if drawn == count or per_folder[folder] == PER_FOLDER:
            continue
        content = _content(roots[name] / relative)
        digest = hashlib.sha256(content).hexdigest()
        if content and digest not in seen:
            seen.add(digest)
            per_folder[folder] += 1
            drawn += 1
            yield name, relative, content


def _content(path: Path) -> bytes:
    """Empty for what is no file, is out of bounds, or may not be read."""
    try:
        if path.is_symlink() or not path.is_file() or not SMALLEST_BYTES <= path.stat().st_size <= LARGEST_BYTES:
            return b""
        return path.read_bytes()
    except OSError:
        return b""


def _hash(text: str) -> int:
    return int(hashlib.sha256((SEED + text).encode(errors="surrogateescape")).hexdigest()[:16], 16)
