"""The Pulumi program: load the stack's configuration, check the cluster, build the platform, export what a person needs."""

import pulumi

from components.errors import PlatformError
from stacks.assets import load_assets
from stacks.loader import load_from_pulumi
from stacks.platform import build
from stacks.providers import check_cluster

try:
    config = load_from_pulumi()
    check_cluster(config)
    outputs = build(config, load_assets())
except PlatformError as error:
    # RunError is what Pulumi prints without a stack trace.
    raise pulumi.RunError(str(error)) from error
for name, value in outputs.exports().items():
    pulumi.export(name, value)
