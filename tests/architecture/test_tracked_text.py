"""Tracked files name no package registry and no place on a developer's machine."""

import re

from tests.architecture.sources import text, tracked

# Put together from parts, so that this file does not find itself.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("deb", "debian", "org"),
        ("static", "crates", "io"),
        ("index", "crates", "io"),
        ("registry", "npmjs", "org"),
    )
]
MACHINE_PATHS = re.compile("(?<![\\w.])/" + "(?:work|root|home/[a-z]+|Users/[A-Za-z]+)/")


def test_no_tracked_file_names_a_package_registry() -> None:
    found = {str(path): host for path in tracked() for host in REGISTRY_HOSTS if host in text(path)}
    assert found == {}


def test_no_tracked_file_holds_a_path_of_somebodys_machine() -> None:
    found = {str(path): match.group() for path in tracked() if (match := MACHINE_PATHS.search(text(path)))}
    assert found == {}
