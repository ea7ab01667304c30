"""Files of a version: their names, and what each is made of."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.spec import Spec
from serving.model_sources import FILE_NAME, FileSourceSpec

# Of a name between two slashes: a file system takes 255 bytes, and files under way have longer names than they end with.
LONGEST_PART = 200
# What lies beside the files of a version (serving/repository/checksums.py), or does while they are made (fetch.py, serving/image/transform.py).
OWN_NAME, OWN_SUFFIXES = "checksums.json", (".partial", ".derived")
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Transformation = Literal["none", "quantise-dynamic-int8", "quantise-static-int8", "onnx-characters"]
# Those after which a network no longer computes the same.
QUANTISATIONS = {"quantise-dynamic-int8", "quantise-static-int8"}


class SourceFileSpec(Spec):
    """A file of a version directory, and where it comes from."""

    name: Annotated[str, Field(pattern=FILE_NAME.pattern, description="Path in the version directory.")]
    source: FileSourceSpec
    sha256: Annotated[Sha256, Field(description="Of the source, before any transformation.")]
    size_bytes: Annotated[int, Field(ge=0, lt=2**50, description="Of the source; volumes that hold the file are sized by it.")]
    transformation: Annotated[Transformation, Field(description="How the image build derives the file (serving/image/transform.py).")] = "none"
    derived_sha256: Annotated[
        Sha256 | None, Field(description="Of the derived file; a quantised network: the one that the optimisation pipeline judged.")
    ] = None

    @model_validator(mode="after")
    def _content_is_known(self) -> Self:
        if (self.transformation == "none") != (self.derived_sha256 is None):
            raise ValueError(f"file {self.name!r}: transformation {self.transformation!r} and derivedSha256 belong together: one without the other")
        if self.name.endswith(".py") and (self.source.kind != "file" or self.transformation != "none"):
            raise ValueError(f"file {self.name!r}: code has a source of kind file and no transformation; copy it below model.yaml's folder")
        return self


def check_file_names(names: Sequence[str]) -> None:
    """Raise ValueError, with both names, when a file would take another's place: here, on a volume that knows no case, or while it is made."""
    taken: dict[str, str] = {}
    for name in names:
        parts = PurePosixPath(name).parts
        if name.lower() == OWN_NAME or name.lower().endswith(OWN_SUFFIXES) or max(map(len, parts)) > LONGEST_PART:
            raise ValueError(
                f"file {name!r}: {OWN_NAME}, *{' and *'.join(OWN_SUFFIXES)} and parts of over {LONGEST_PART} characters are no names of files"
            )
        if (other := taken.setdefault(name.lower(), name)) != name or names.count(name) > 1:
            raise ValueError(f"file {name!r}: there is {other!r} already, and not every volume tells upper case from lower; give it another name")
    for name in names:
        if above := [taken[str(folder)] for folder in PurePosixPath(name.lower()).parents if str(folder) in taken]:
            raise ValueError(f"file {name!r}: {above[0]!r} is a file, and cannot be a folder too; give one of them another name")
