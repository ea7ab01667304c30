"""A namespace per test, gone afterwards."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.kube import Kube

# Set to look at what a failed test left behind.
KEEP_VARIABLE = "INFERENCE_PLATFORM_E2E_KEEP"


@contextmanager
def namespace(kube: Kube, purpose: str) -> Iterator[str]:
    """Create a namespace under a name of its own and delete it with all that is in it."""
    name = f"e2e-{purpose}-{uuid.uuid4().hex[:6]}"
    kube.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"inference-platform/e2e": "true"}}}])
    try:
        yield name
    finally:
        if not os.environ.get(KEEP_VARIABLE):
            kube.delete("namespaces", name)
