"""The Kubernetes provider's source: its Go module lacks the generated files that its main package embeds, so they are made from those it has."""

import json
import os
import shutil
from importlib import metadata
from pathlib import Path

from tools.paths import toolchain_dir
from tools.toolchain.catalog import BY_NAME
from tools.toolchain.modules import module_directory
from tools.toolchain.storage import link_atomically, published

MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
MAIN = "cmd/pulumi-resource-kubernetes"
BINARY = "pulumi-resource-kubernetes"


def provider_version() -> str:
    """The version of the pinned SDK: the engine asks for the provider of exactly the version that the SDK names."""
    return metadata.version("pulumi-kubernetes")


def plugin_folder() -> str:
    return f"resource-kubernetes-v{provider_version()}"


def prepare_provider(go: str) -> Path:
    """A copy of tools/gomod/provider with `schema-embed.json` and `terraform-mapping-embed.json` beside main.go, ready to be compiled."""
    group = BY_NAME["provider"]
    main = module_directory(go, group.directory, MODULE) / MAIN
    target = toolchain_dir() / f"provider-source-{group.key}"
    shutil.rmtree(target, ignore_errors=True)
    with published(target) as partial:
        for file in group.directory.iterdir():
            shutil.copyfile(file, partial / file.name)
        schema = json.loads((main / "schema.json").read_text())
        schema["version"] = provider_version()
        (partial / "schema-embed.json").write_text(json.dumps(schema))
        shutil.copyfile(main / "terraform-mapping.json", partial / "terraform-mapping-embed.json")
    return target


def install_plugin(pulumi_home: Path, binary: Path) -> None:
    """Put the provider where the engine looks for plugins. It is not put on PATH: the engine would find it there, but warn on every run.

    The folder must be a real one (the engine skips links); the program in it may be a link. Pulumi marks unfinished installations only
    (a `.partial` file), so nothing else is needed.
    """
    link_atomically(pulumi_home / "plugins" / plugin_folder() / BINARY, Path(os.path.abspath(binary)))  # noqa: PTH100  keep links as they are
