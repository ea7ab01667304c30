"""Local assets: found, or an error that says which and how to get them."""

import json
from pathlib import Path

import pytest

from components.errors import AssetError
from stacks.assets import ASSETS_VARIABLE, load_assets


def write(path: Path, content: object) -> dict[str, str]:
    path.write_text(json.dumps(content))
    return {ASSETS_VARIABLE: str(path)}


def test_charts_and_images_are_found_by_name(tmp_path: Path) -> None:
    assets = load_assets(write(tmp_path / "assets.json", {"charts": {"istiod": "/charts/istiod"}, "images": {"triton": "t:1"}}))
    assert assets.charts == {"istiod": "/charts/istiod"}
    assert assets.image("triton") == "t:1"


def test_a_stack_that_needs_none_needs_no_file() -> None:
    assert load_assets({}).images == {}


def test_a_missing_image_says_which_are_there_and_how_to_build_it(tmp_path: Path) -> None:
    assets = load_assets(write(tmp_path / "assets.json", {"charts": {}, "images": {"pilot": "p:1"}}))
    with pytest.raises(AssetError) as caught:
        assets.image("triton")
    assert "no local image 'triton'; known: pilot" in caught.value.message
    assert "make up" in caught.value.hint


def test_a_file_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="No such file"):
        load_assets({ASSETS_VARIABLE: str(tmp_path / "gone.json")})


@pytest.mark.parametrize("content", [[], {"charts": {}}, {"charts": {}, "images": {}, "other": 1}, {"charts": {"a": 1}, "images": {}}])
def test_a_file_of_another_shape_is_an_error_of_ours(tmp_path: Path, content: object) -> None:
    with pytest.raises(AssetError, match="is no list of assets"):
        load_assets(write(tmp_path / "assets.json", content))
