"""Local assets: chart directories and container images that `make up` built, named in one file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from components.core.spec import Spec
from components.errors import AssetError

ASSETS_VARIABLE = "INFERENCE_PLATFORM_ASSETS"


class Assets(Spec):
    """Charts by name (a directory each) and images by name (a reference each, whose tag changes with the content)."""

    charts: Annotated[dict[str, str], Field(description="Chart directories.")]
    images: Annotated[dict[str, str], Field(description="Image references.")]

    def image(self, name: str) -> str:
        """The reference of an image; AssetError when `make up` built none of that name."""
        if name not in self.images:
            listed = ", ".join(sorted(self.images)) or "none"
            raise AssetError(
                f"there is no local image {name!r}; known: {listed}",
                hint=f'run make up, or in a shell of its own: eval "$(make env)" ({ASSETS_VARIABLE})',
            )
        return self.images[name]


def load_assets(environ: Mapping[str, str] = os.environ) -> Assets:
    """The assets in the file $INFERENCE_PLATFORM_ASSETS; none where the variable is not set, as for a stack that needs none."""
    name = environ.get(ASSETS_VARIABLE)
    if not name:
        return Assets(charts={}, images={})
    try:
        return Assets.model_validate_json(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise AssetError(f"{ASSETS_VARIABLE}={name}: {error.strerror}", hint="run make up, which writes the file") from error
    except ValidationError as error:
        raise AssetError(f"{ASSETS_VARIABLE}={name} is no list of assets", hint="run make up, which writes the file anew") from error
