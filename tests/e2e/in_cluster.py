"""What tests bring to the cluster: an object store that its pods reach, and the image of the platform's own programs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from tests.e2e.platform import NAMESPACE
from tools.cluster import load_images
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.images import ensure_images
from tools.target import CLUSTER_VARIABLE, DEFAULT_CLUSTER
from tools.toolchain import ensure

# The store asks for some; it takes any.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "key"}
SECRET_NAME = "object-store"  # noqa: S105  (its name, not what is in it)
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME, "namespace": NAMESPACE}, "stringData": CREDENTIALS}


def local_state() -> State:
    """The local cluster of this run."""
    state = State.read(Layout.of(os.environ.get(CLUSTER_VARIABLE) or DEFAULT_CLUSTER))
    assert state is not None
    return state


@contextmanager
def object_store() -> Iterator[str]:
    """A store on the host's end of the cluster's network, where nothing but the cluster reaches it; gives its address."""
    addresses = local_state().addresses
    assert addresses is not None
    server = ThreadedMotoServer(addresses.host, 0)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


def apps_image() -> str:
    """The image of the platform's own programs, on the node."""
    image = ensure_images(ensure().path, names=["apps"])["apps"]
    load_images(local_state().cluster, [image.path])
    return image.ref
