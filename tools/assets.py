"""assets.json: which charts and image references the local stack uses. The tools write it, `stacks/assets.py` reads it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.errors import ToolError
from tools.paths import cache_dir
from tools.toolchain.storage import write_atomically

VARIABLE = "INFERENCE_PLATFORM_ASSETS"
_HINT = "run `make up`, which writes it"


@dataclass(frozen=True, kw_only=True)
class Assets:
    """`charts`: name -> chart directory; `images`: name -> reference whose tag changes with the image's inputs."""

    charts: Mapping[str, Path]
    images: Mapping[str, str]

    def as_json(self) -> str:
        document = {"charts": {name: str(path) for name, path in self.charts.items()}, "images": dict(self.images)}
        return json.dumps(document, indent=2, sort_keys=True) + "\n"


def assets_path() -> Path:
    """Where the variable INFERENCE_PLATFORM_ASSETS says, else in the cache."""
    explicit = os.environ.get(VARIABLE)
    return Path(explicit) if explicit else cache_dir() / "assets.json"


def write_assets(assets: Assets, path: Path | None = None) -> Path:
    """Replace the file at once, so that an update which runs meanwhile reads the old or the new one. Returns where it is."""
    place = path or assets_path()
    write_atomically(place, assets.as_json())
    return place


def read_assets(path: Path | None = None) -> Assets:
    """Raises ToolError when the file is missing or is not what `write_assets` writes."""
    place = path or assets_path()
    try:
        document = json.loads(place.read_text())
        return Assets(
            charts={str(name): Path(directory) for name, directory in document["charts"].items()},
            images={str(name): str(reference) for name, reference in document["images"].items()},
        )
    except FileNotFoundError as error:
        raise ToolError(f"{place} does not exist", _HINT) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{place} is not a list of assets: {error!r}", f"delete it, then {_HINT}") from error
