"""The file that tells the local stack which charts and images to use."""

from stacks.assets import load_assets
from tools.assets import write_assets


def test_the_stack_reads_what_the_tools_wrote(tmp_path):
    place = tmp_path / "clusters" / "assets.json"
    write_assets(place, {"istiod": tmp_path / "charts"}, {"triton": "localhost/triton:abc"})
    assets = load_assets({"INFERENCE_PLATFORM_ASSETS": str(place)})
    assert assets.charts == {"istiod": str(tmp_path / "charts")}
    assert assets.image("triton") == "localhost/triton:abc"


def test_a_file_that_says_the_same_is_left_as_it_is(tmp_path):
    place = tmp_path / "assets.json"
    write_assets(place, {}, {"triton": "a"})
    before = place.stat().st_mtime_ns
    write_assets(place, {}, {"triton": "a"})
    assert place.stat().st_mtime_ns == before
