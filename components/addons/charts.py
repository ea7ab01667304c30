"""Which chart a source means."""

from collections.abc import Mapping

from components.addons.spec import ChartSource, ModuleSource
from components.core.chart import ChartRef
from components.errors import AssetError


def chart_ref(source: ModuleSource | ChartSource, published: str, local: str, directories: Mapping[str, str]) -> ChartRef:
    """The chart that its repository calls `published` and the local assets call `local`; `directories` are the local charts by name.

    Raises AssetError when the source is the module and the directory is not known.
    """
    if isinstance(source, ChartSource):
        if source.repository.startswith("oci://"):
            return ChartRef(chart=f"{source.repository.rstrip('/')}/{published}", version=source.version)
        return ChartRef(chart=published, version=source.version, repository=source.repository)
    if local not in directories:
        known = ", ".join(sorted(directories)) or "none"
        raise AssetError(f"source kind: module needs the local chart {local!r}; known: {known}", hint="run make up, which lists the local charts")
    return ChartRef(chart=directories[local])
