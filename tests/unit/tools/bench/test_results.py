"""What `make bench` writes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tools.bench import gateway_cost
from tools.bench.results import Figure, Machine, Part, figures_of, inputs_key, shown, write_part

MACHINE = Machine(cores=2, memory_mib=24_000, processor="a processor", kernel="6.1", python="3.11")


def results() -> Part:
    figures = (*figures_of([{"ratio": 1.25}, {"ratio": 1.5}, {"ratio": 1.0}], ""), Figure(name="time", unit="s", values=(2.0,)))
    return Part(figures=figures, machine=MACHINE, versions={"pulumi": "v3"}, notes=("both in turn",), inputs="abc")


def test_the_table_shows_median_range_and_number_of_runs() -> None:
    text = results().to_markdown()
    assert "| ratio | 1.25 | 1 to 1.5 | 3 |" in text
    assert "| time | 2 s | 2 to 2 | 1 |" in text
    assert "2 cores (a processor), 24000 MiB, Linux 6.1" in text
    assert "- both in turn" in text


def test_the_file_keeps_every_value_machine_versions_and_key(tmp_path: Path) -> None:
    write_part(tmp_path / "bench", "platform", results())
    kept = json.loads((tmp_path / "bench" / "results.json").read_text())["platform"]
    assert kept["figures"][0]["values"] == [1.25, 1.5, 1.0]
    assert (kept["machine"]["cores"], kept["versions"], kept["inputs"]) == (2, {"pulumi": "v3"}, "abc")
    assert kept["taken"].endswith("+00:00")


def test_a_part_is_written_beside_the_others_which_stay_as_they_are(tmp_path: Path) -> None:
    platform, serving = results(), replace(results(), inputs="other", taken="yesterday", machine=replace(MACHINE, cores=64))
    write_part(tmp_path, "serving", serving)
    write_part(tmp_path, "platform", replace(platform, inputs="old"))
    write_part(tmp_path, "platform", platform)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert {name: Part.parse(part) for name, part in kept.items()} == {"platform": platform, "serving": serving}
    text = (tmp_path / "README.md").read_text()
    assert text.index("## platform") < text.index("on 2 cores") < text.index("## serving") < text.index("on 64 cores")


def test_the_key_changes_with_the_code_and_not_with_the_results(tmp_path: Path) -> None:
    for name in ("requirements.txt", "serving/Containerfile", "components/a.py", "docs/bench/results.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    key = inputs_key(tmp_path)
    (tmp_path / "docs/bench/results.json").write_text("two")
    assert inputs_key(tmp_path) == key
    (tmp_path / "components/a.py").write_text("two")
    assert inputs_key(tmp_path) != key


def test_the_machine_is_described_as_it_is() -> None:
    here = Machine.here()
    assert here.cores >= 1
    assert here.memory_mib > 256
    assert here.processor


def test_rates_are_tried_from_high_to_low() -> None:
    assert list(gateway_cost.RATES_RPS) == sorted(gateway_cost.RATES_RPS, reverse=True)


@pytest.mark.parametrize(("value", "text"), [(4496.2, "4500"), (16_690.0, "16700"), (0.41149, "0.411"), (22.27, "22.3"), (20.0, "20"), (0.0, "0")])
def test_a_value_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert shown(value) == text
