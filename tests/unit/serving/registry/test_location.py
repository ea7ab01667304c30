"""Where a registry may be, and that a password in its address is never shown."""

from pathlib import Path

import pytest

from serving.registry.location import Location


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("sqlite:////var/lib/registry.db", "sqlite:////var/lib/registry.db"),
        ("http://registry:5000", "http://registry:5000"),
        ("https://user:hunter2@registry.example.com/mlflow/", "https://registry.example.com/mlflow"),
        ("https://user:hun@ter2@registry.example.com", "https://registry.example.com"),
        ("https://registry.example.com/?token=hunter2#hunter2", "https://registry.example.com/"),
    ],
)
def test_a_place_is_shown_without_its_password(uri: str, shown: str) -> None:
    location = Location.parse(uri)
    assert (str(location), repr(location)) == (shown, f"Location({shown!r})")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "registry.db",
        "/registry.db",
        "sqlite:///registry.db",
        "sqlite://",
        "sqlite:////",
        "sqlite:////registry.db?mode=ro",
        "http://",
        "https://:hunter2@",
        "http://host:port",
        "http://[::1",
        "ftp://hunter2@host",
        "postgresql://user:hunter2@host/db",
        "databricks",
    ],
)
def test_what_is_no_place_is_refused_with_those_that_are_and_not_repeated(uri: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///<absolute path>") as refused:
        Location.parse(uri)
    assert "hunter2" not in str(refused.value)


def test_a_file_is_found_again() -> None:
    assert Location.of_file(Path("/a/b.db")).file == Path("/a/b.db")
    assert Location.parse("http://registry").file is None
