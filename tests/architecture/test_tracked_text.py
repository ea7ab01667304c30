"""Tracked files name no package registry and no place on a developer's machine."""

import re

from tests.architecture.sources import text, tracked

# Written with a class of one character each, so that this file does not find itself.
REGISTRY_HOSTS = re.compile(
    r"pypi[.]org|pythonhoste[d][.]org|(proxy|sum)[.]golang[.]org|deb[.]debian[.]org|(static|index)[.]crates[.]io|registry[.]npmjs[.]org"
)
MACHINE_PATHS = re.compile("(?<![\\w.])/" + "(?:work|root|home/[a-z]+|Users/[A-Za-z]+)/")


def test_no_tracked_file_names_a_package_registry() -> None:
    found = {str(path): match.group() for path in tracked() if (match := REGISTRY_HOSTS.search(text(path)))}
    assert found == {}


def test_no_tracked_file_holds_a_path_of_somebodys_machine() -> None:
    found = {str(path): match.group() for path in tracked() if (match := MACHINE_PATHS.search(text(path)))}
    assert found == {}
