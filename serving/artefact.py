"""What a published version consists of, as one hash: registry, repository and stack know by it that they mean the same.

It is computed from model.yaml and the code beside it before anything runs (`version_files`), and from what a store lists (serving/repository/expected.py).
"""

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from components.errors import ManifestError
from serving.model_files import SourceFileSpec
from serving.model_manifest import MODELS_DIR, ModelManifest, model_manifest
from serving.model_steps import StepSpec

CODE = ".py"
# Longer code counts byte for byte: a parsed file takes a thousand times its size in memory, and an init step has little.
MAX_PARSED_BYTES = 128 * 1024

Find = Callable[[str], ModelManifest]


def files_sha256(hashes: Mapping[str, str]) -> str:
    """Hash of a version's files by name: of a line `<sha256>  <name>` for each, sorted, as sha256sum prints them; of code its `code_sha256`."""
    return hashlib.sha256("".join(sorted(f"{sha256}  {name}\n" for name, sha256 in hashes.items())).encode()).hexdigest()


def code_sha256(content: bytes) -> str:
    """SHA-256 of Python code without comments, blank lines and spaces at ends of lines; of what is no such code, or is long, byte for byte.

    Whether only those are gone is asked of Python's own parser, so that nothing that runs can pass for a comment.
    """
    return _parsed_sha256(content) if len(content) <= MAX_PARSED_BYTES else hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=32)
def _parsed_sha256(content: bytes) -> str:
    """Kept, for every version of a model has the code beside its model.yaml, and parsing it is slow."""
    try:
        bare = _without_comments(content.decode())
        if ast.dump(ast.parse(bare)) == ast.dump(ast.parse(content)):
            content = bare.encode()
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        pass
    return hashlib.sha256(content).hexdigest()


def code_files(manifest: ModelManifest) -> list[Path]:
    """Code beside model.yaml, which every version of the model gets unless it lists a file of that name."""
    return sorted((MODELS_DIR / manifest.name).glob(f"*{CODE}"))


def version_files(manifest: ModelManifest, number: int) -> dict[str, str]:
    """Hash of every file in a version's directory by its name, as published. Raises ManifestError for a version that is not."""
    version = manifest.version(number)
    hashes = {} if version.steps else {path.name: code_sha256(path.read_bytes()) for path in code_files(manifest)}
    return {**hashes, **{file.name: _file_sha256(manifest, file) for file in version.files}}


def artefact_sha256(manifest: ModelManifest, number: int, find: Find = model_manifest) -> str:
    """The `files_sha256` of a version; of an ensemble, which has no files, the hash of a line of JSON for each step, with that of the step's model.

    `find` gives the manifest of a name. Raises ManifestError for a version, or a step's, that was never published.
    """
    version = manifest.version(number)
    if not version.steps:
        return files_sha256(version_files(manifest, number))
    return hashlib.sha256("".join(_step(step, artefact_sha256(find(step.model), step.version, find)) for step in version.steps).encode()).hexdigest()


def _step(step: StepSpec, artefact: str) -> str:
    return json.dumps({**step.model_dump(mode="json", by_alias=True), "artefactSha256": artefact}, sort_keys=True) + "\n"


def _file_sha256(manifest: ModelManifest, file: SourceFileSpec) -> str:
    if file.source.kind != "file" or not file.name.endswith(CODE):
        return file.derived_sha256 or file.sha256
    path = MODELS_DIR / manifest.name / file.source.path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {error.strerror}", hint="put the file there, or correct `source` in model.yaml") from error
    if (found := hashlib.sha256(content).hexdigest()) != file.sha256:
        raise ManifestError(
            f"{path} has SHA-256 {found}, but model.yaml says {file.sha256} for {file.name}", hint="new content needs a new version in model.yaml"
        )
    return code_sha256(content)


def _without_comments(text: str) -> str:
    lines = text.split("\n")
    blank = set()
    for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
        row, column = token.start[0] - 1, token.start[1]
        if token.type == tokenize.COMMENT:
            lines[row] = lines[row][:column].rstrip()
        elif token.type in (tokenize.NEWLINE, tokenize.NL) and row < len(lines):
            lines[row] = lines[row].rstrip()
            if not lines[row]:
                blank.add(row)
    return "\n".join(line for row, line in enumerate(lines) if row not in blank).rstrip("\n") + "\n"
