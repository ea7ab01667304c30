"""`python -m tools.cluster start|stop|delete|status`: exit code 0 when done (status: when ready), 1 with a sentence when not."""

import argparse
import sys

from components.core.command_line import CommandLine, whole_number
from tools.cli import run_main
from tools.cluster.images import NodeImages
from tools.cluster.lifecycle import check, delete, start, stop
from tools.cluster.spec import MAX_NODES, ClusterSpec
from tools.cluster.status import ClusterStatus, status


def _parser() -> argparse.ArgumentParser:
    parser = CommandLine(prog="python -m tools.cluster", description="A real local Kubernetes, as processes of one supervisor.")
    commands = parser.add_subparsers(dest="command", required=True)
    defaults = ClusterSpec()
    parsers = {
        "start": commands.add_parser("start", help="start the cluster, or bring a running one to what the options say"),
        "stop": commands.add_parser("stop", help="end its processes; data and images stay"),
        "delete": commands.add_parser("delete", help="stop it and remove its data"),
        "status": commands.add_parser("status", help="say how it fares"),
    }
    for each in parsers.values():
        each.add_argument("--name", default=defaults.name, help="default: %(default)s")
    begin = parsers["start"]
    begin.add_argument(
        "--control-plane-only", action="store_true", help="etcd, API server, scheduler and controller manager on 127.0.0.1; needs no root"
    )
    begin.add_argument(
        "--nodes", type=whole_number, default=defaults.nodes, choices=range(1, MAX_NODES + 1), help="at least so many; default: %(default)s"
    )
    begin.add_argument("--zones", default=",".join(defaults.zones), help="the nodes' zones; default: %(default)s")
    begin.add_argument("--api-port", type=whole_number, default=0, help="control plane only: the API server's port; default: a free one")
    parsers["delete"].add_argument("--images", action="store_true", help="remove the image stores too")
    parsers["status"].add_argument("--json", action="store_true", help="for machines")
    return parser


def _start(options: argparse.Namespace) -> int:
    # Imported late: stop, delete and status build nothing, so they need neither.
    from tools.images import ensure_images  # noqa: PLC0415
    from tools.toolchain import ensure  # noqa: PLC0415
    from tools.toolchain.debian import ensure_packages  # noqa: PLC0415

    zones = tuple(zone for zone in options.zones.split(",") if zone)
    spec = ClusterSpec(name=options.name, control_plane_only=options.control_plane_only, nodes=options.nodes, zones=zones, api_port=options.api_port)
    check(spec)
    toolchain = ensure()
    images = None
    if not spec.control_plane_only:
        ensure_packages()
        built = ensure_images(toolchain.path, names=("pause", "coredns"))
        images = NodeImages(pause=built["pause"].ref, coredns=built["coredns"].ref, archives=tuple(image.path for image in built.values()))
    cluster = start(spec, toolchain.path, images, say=lambda line: print(line, flush=True))
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    return 0


def _show(found: ClusterStatus) -> None:
    print(f"cluster {found.name}: {found.state}{f', {found.server}, KUBECONFIG={found.kubeconfig}' if found.server else ''}")
    for node in found.nodes:
        print(f"  node {node.name:24} {'ready' if node.ready else 'not ready':10} {node.ip}")
    for process in found.processes:
        print(f"  {process.name:29} {process.state:10} pid {process.pid}, {process.restarts} restarts")


def _status(options: argparse.Namespace) -> int:
    found = status(options.name)
    if options.json:
        print(found.to_json())
    else:
        _show(found)
    return 0 if found.state == "ready" else 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "start":
        return _start(options)
    if options.command == "status":
        return _status(options)
    if options.command == "stop":
        print(f"cluster {options.name} {'stopped' if stop(options.name) else 'was not running'}")
    else:
        delete(options.name, keep_images=not options.images)
        print(f"cluster {options.name} deleted")
    return 0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return run_main(lambda: _run(options))


if __name__ == "__main__":
    sys.exit(main())
