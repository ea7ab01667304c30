"""The command on a server that answers, sheds load, refuses items or says nonsense."""

import json
import os
import signal
import threading

import grpc
import pytest

from serving.batch.__main__ import Exit, main
from serving.batch.asking import Backoff
from serving.contract import VERSION_HEADER
from tests.unit.serving.batch.fake_triton import MAX_BATCH, Refuse, poison, sheds


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Waits of a run in milliseconds; their arithmetic is tested by itself."""
    monkeypatch.setattr(
        "serving.batch.__main__.Backoff",
        lambda outage_seconds: Backoff(first_seconds=0.001, longest_seconds=0.01, attempts=4, outage_seconds=outage_seconds),
    )


def records(output):
    lines = [line for part in sorted(output.rglob("part-*.jsonl")) for line in part.read_text().splitlines()]
    return {content["id"]: content for content in map(json.loads, lines)}, len(lines)


def test_every_item_is_answered_once_in_batches_of_the_models_size_and_of_its_lowest_priority(batch, triton, inputs, tmp_path, capsys):
    assert batch() == Exit.DONE
    found, lines = records(tmp_path / "out")
    assert lines == len(found) == 60
    assert found["a/001.txt"]["outputs"] == {"length": 9, "text": "content 1"}
    assert found["a/001.txt"]["version"] == "1"
    assert max(triton.sizes) == MAX_BATCH
    assert set(triton.priorities) == {2}
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.DONE
    summary = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (summary["total"], summary["answered"], summary["failed"]) == (60, 60, 0)


def test_a_second_run_asks_nothing(batch, triton):
    assert batch() == Exit.DONE
    asked = triton.requests
    assert batch() == Exit.DONE
    assert triton.requests == asked


def test_inputs_that_are_added_later_are_asked_about_alone(batch, triton, inputs, tmp_path):
    batch()
    (inputs / "new.txt").write_bytes(b"new")
    assert batch() == Exit.DONE
    assert triton.asked[b"new"] == 1
    assert records(tmp_path / "out")[1] == 61


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED], ids=lambda code: code.name
)
def test_a_server_that_sheds_load_is_asked_again(batch, triton, tmp_path, code):
    triton.faults = sheds(0.5, seed=1, code=code)
    assert batch() == Exit.DONE
    assert records(tmp_path / "out")[1] == 60


def test_poison_is_recorded_and_stops_nothing_else(batch, triton, inputs, tmp_path, capsys):
    triton.faults = poison(b"content 7", b"content 8", b"content 59")
    assert batch() == Exit.ITEMS_FAILED
    found, lines = records(tmp_path / "out")
    assert lines == 60
    assert {name for name, record in found.items() if "error" in record} == {"a/007.txt", "a/008.txt", "a/059.txt"}
    assert found["a/007.txt"]["error"]["code"] == "INTERNAL"
    assert "3 failed" in capsys.readouterr().err
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.DONE
    assert "3 failed (a/007.txt, a/008.txt, a/059.txt)" in capsys.readouterr().out
    triton.faults = poison(b"content 7")
    assert batch() == Exit.ITEMS_FAILED
    assert batch("--retry-failed") == Exit.ITEMS_FAILED
    found, lines = records(tmp_path / "out")
    assert lines == 60
    assert {name for name, record in found.items() if "error" in record} == {"a/007.txt"}


def test_an_item_that_only_failed_in_company_is_answered(batch, triton, tmp_path):
    """Triton may put it into one batch with a bad item of somebody else."""
    seen: list[list[bytes]] = []

    def in_company(contents):
        if b"content 7" in contents and len(seen) < 4:
            seen.append(contents)
            raise Refuse(grpc.StatusCode.INTERNAL, "somebody else's fault")

    triton.faults = in_company
    assert batch() == Exit.DONE
    assert [len(contents) for contents in seen][-1] == 1  # halved until it stood alone, then asked once more


def test_an_item_that_is_refused_for_its_size_fails_alone_while_the_server_answers_others(batch, triton, tmp_path):
    def too_large(contents):
        if b"content 7" in contents:
            raise Refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max")

    triton.faults = too_large
    assert batch() == Exit.ITEMS_FAILED
    found, _ = records(tmp_path / "out")
    assert [name for name, record in found.items() if "error" in record] == ["a/007.txt"]


def test_a_model_that_fails_everything_ends_the_run(batch, triton, capsys):
    triton.faults = poison(*(f"content {number}".encode() for number in range(60)))
    assert batch("--max-failed", "10") == Exit.REFUSED
    assert "more than 10 items failed" in capsys.readouterr().err


def test_an_answer_without_rows_is_no_answer(batch, triton, tmp_path):
    triton.empty = True
    assert batch() == Exit.ITEMS_FAILED
    found, _ = records(tmp_path / "out")
    assert {record["error"]["code"] for record in found.values()} == {"BAD_ANSWER"}


def test_an_outage_ends_the_run_and_keeps_what_was_answered(batch, triton, tmp_path, monkeypatch, capsys):
    def dies(number):
        triton.ready = number < 3

    triton.on_request = dies
    triton.faults = lambda _: None if triton.ready else sheds(1, 0)([])
    monkeypatch.setattr(
        "serving.batch.__main__.Backoff", lambda outage_seconds: Backoff(first_seconds=0.001, longest_seconds=0.01, outage_seconds=0.2)
    )
    assert batch("--in-flight", "1") == Exit.NO_SERVER
    assert "refuses everybody for" in capsys.readouterr().err
    assert records(tmp_path / "out")[1] == 2 * MAX_BATCH
    triton.on_request, triton.ready = lambda _: None, True
    assert batch() == Exit.DONE
    assert records(tmp_path / "out")[1] == 60


def test_sigterm_finishes_what_is_in_flight_and_the_next_run_the_rest(batch, triton, tmp_path):
    def end(number):
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    assert threading.current_thread() is threading.main_thread()
    triton.delay_seconds = lambda: 0.02
    triton.on_request = end
    assert batch("--in-flight", "2") == 128 + signal.SIGTERM
    _, lines = records(tmp_path / "out")
    assert 3 * MAX_BATCH <= lines < 60
    assert lines == sum(triton.asked.values())
    triton.on_request = lambda _: None
    assert batch() == Exit.DONE
    assert set(triton.asked.values()) == {1}


def test_an_unreadable_and_a_too_large_item_are_recorded(batch, inputs, tmp_path, monkeypatch):
    (inputs / "large").write_bytes(b"x" * (1024 * 1024 + 1))
    assert batch("--item-mib", "1") == Exit.ITEMS_FAILED
    assert records(tmp_path / "out")[0]["large"]["error"]["code"] == "TOO_LARGE"


def test_shards_share_the_inputs_and_one_check_covers_them(batch, triton, inputs, tmp_path):
    assert [batch("--shard", f"{index}/3") for index in range(3)] == [Exit.DONE] * 3
    assert set(triton.asked.values()) == {1}
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.DONE
    assert main(["merge", str(inputs), str(tmp_path / "out"), "--to", str(tmp_path / "all.jsonl")]) == Exit.DONE
    ids = [json.loads(line)["id"] for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert ids == sorted(ids)
    assert len(ids) == 60


def test_an_output_keeps_the_settings_it_was_begun_with(batch, capsys):
    batch("--shard", "0/2")
    assert batch("--shard", "0/3") == Exit.REFUSED
    assert "shards 2 and now 3" in capsys.readouterr().err


def test_a_config_that_a_gateway_hides_must_be_given(batch, triton, capsys):
    triton.config_readable = False
    assert batch() == Exit.REFUSED
    assert "give both --max-batch and --priority" in capsys.readouterr().err
    assert batch("--max-batch", "4", "--priority", "1") == Exit.DONE
    assert (max(triton.sizes), set(triton.priorities)) == (4, {1})


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "other"), "does not describe model 'other': NOT_FOUND"),
        (("--outputs", "score"), "no output score"),
        (("--max-batch", "9"), "above the model's max_batch_size 8"),
        (("--priority", "3"), "above the model's 2 priority levels"),
    ],
)
def test_what_the_model_does_not_offer_is_refused_before_anything_is_written(batch, tmp_path, capsys, words, reason):
    assert batch(*words) == Exit.REFUSED
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("datatype", "shape", "reason"), [("FP32", [-1, 1], "of type FP32 and shape [-1, 1]"), ("BYTES", [-1, 3], "of type BYTES and shape [-1, 3]")]
)
def test_a_model_that_takes_no_files_is_refused(batch, triton, capsys, datatype, shape, reason):
    triton.datatype, triton.shape = datatype, shape
    assert batch() == Exit.REFUSED
    told = capsys.readouterr().err
    assert reason in told
    assert "use a model whose one input takes a file" in told


@pytest.mark.parametrize("shape", [[-1], [-1, -1]])
def test_a_model_that_takes_a_vector_of_bytes_is_asked_about_one_item_at_a_time(batch, triton, tmp_path, shape):
    triton.datatype, triton.shape = "UINT8", shape
    assert batch() == Exit.DONE
    found, lines = records(tmp_path / "out")
    assert (lines, set(triton.sizes)) == (60, {1})
    assert found["a/001.txt"]["outputs"] == {"length": 9, "text": "content 1"}
    assert {tuple(request.inputs[0].shape) for request, _ in triton.seen} <= {(*[1] * (len(shape) - 1), size) for size in (9, 10)}


def test_every_request_names_the_version_where_a_gateway_reads_it(batch, triton):
    """In the message alone, a canary's share of the requests would reach servers that do not have it."""
    triton.faults = sheds(0.3, seed=1)
    assert batch("--version", "1") == Exit.DONE
    assert {name for name, _ in triton.headers} == {"ModelMetadata", "ModelConfig", "ModelReady", "ModelInfer"}
    assert {headers.get(VERSION_HEADER) for _, headers in triton.headers} == {"1"}
    assert {request.model_version for request, _ in triton.seen} == {"1"}


def test_without_a_version_the_weights_decide(batch, triton):
    assert batch() == Exit.DONE
    assert not any(VERSION_HEADER in headers for _, headers in triton.headers)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAVAILABLE], ids=lambda code: code.name)
def test_a_gateway_that_has_no_route_yet_is_waited_for_by_the_next_run(batch, triton, code, capsys):
    triton.refusals["ModelMetadata"] = [code]
    assert batch() == Exit.NO_SERVER
    assert f": {code.name}, " in capsys.readouterr().err
    assert batch() == Exit.DONE


def test_a_config_that_cannot_be_read_at_the_moment_is_no_refusal(batch, triton):
    triton.refusals["ModelConfig"] = [grpc.StatusCode.UNAVAILABLE]
    assert batch() == Exit.NO_SERVER
    triton.refusals["ModelConfig"] = [grpc.StatusCode.UNIMPLEMENTED]
    assert batch() == Exit.REFUSED
    assert batch() == Exit.DONE


def test_a_server_that_is_not_there_is_an_outage(inputs, tmp_path, capsys):
    assert main(["run", str(inputs), str(tmp_path / "out"), "--address", "127.0.0.1:1", "--model", "echo"]) == Exit.NO_SERVER
    assert "error: 127.0.0.1:1 does not describe model 'echo': UNAVAILABLE" in capsys.readouterr().err


def test_input_and_output_inside_each_other_are_refused(batch, inputs, capsys):
    assert batch(output=inputs / "out") == Exit.REFUSED
    assert "lie inside each other" in capsys.readouterr().err
