"""assets.json: which charts and image references the local stack uses; stacks/assets.py reads what this writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from tools.files import write_atomically


def write_assets(path: Path, charts: Mapping[str, Path], images: Mapping[str, str]) -> None:
    """Chart name -> directory and image name -> reference. The file is replaced at once: an update that runs meanwhile reads the old or the new one."""
    document = {"charts": {name: str(directory) for name, directory in charts.items()}, "images": dict(images)}
    write_atomically(path, json.dumps(document, indent=2, sort_keys=True) + "\n")
