"""The image of the platform's own programs, which `make up` leaves out while the stack file needs none of them."""

from pathlib import Path

from stacks.apps import APPS_IMAGE
from stacks.assets import ASSETS_VARIABLE, load_assets
from tests.e2e.platform import Platform
from tools.assets import write_assets
from tools.cluster import load_images
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.images import ensure_images
from tools.target import CLUSTER_VARIABLE
from tools.toolchain import ensure


def provide_apps_image(platform: Platform) -> None:
    """Do for that image what `make up` does: build it, bring it to the nodes, list it among the assets. It stays; a stack that does not name it is the same."""
    state = State.read(Layout.of(platform.stack.env[CLUSTER_VARIABLE]))
    assert state is not None
    image = ensure_images(ensure().path, names=[APPS_IMAGE])[APPS_IMAGE]
    load_images(state.cluster, [image.path])
    assets = load_assets(platform.stack.env)
    charts = {name: Path(folder) for name, folder in assets.charts.items()}
    write_assets(Path(platform.stack.env[ASSETS_VARIABLE]), charts, {**assets.images, APPS_IMAGE: image.ref})
