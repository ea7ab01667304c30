"""Where a Helm chart is taken from."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ChartRef:
    """`chart` is a directory, or a name in `repository` (then with a `version`), or an OCI reference."""

    chart: str
    version: str | None = None
    repository: str | None = None
