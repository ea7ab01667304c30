"""Prefixes of an object store, against a real S3 server (moto's)."""

import io
import json
import socket
import time
import uuid
from collections import Counter
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.response import StreamingBody
from moto.server import ThreadedMotoServer

from serving import s3
from serving.batch.__main__ import Exit, main
from serving.batch.errors import BatchError, LockError
from serving.batch.objects import ObjectStorage, connect
from tests.unit.serving.batch.fake_triton import poison


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def client(endpoint, monkeypatch):
    for name, value in {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    return boto3.client("s3", endpoint_url=endpoint)


@pytest.fixture
def bucket(client):
    name = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    return name


@pytest.fixture
def filled(client, bucket):
    """Forty objects, and a folder as a console makes it."""
    client.put_object(Bucket=bucket, Key="in/", Body=b"")
    for number in range(40):
        client.put_object(Bucket=bucket, Key=f"in/{number:03d}", Body=f"content {number}".encode())
    return f"s3://{bucket}/in", f"s3://{bucket}/out"


def ids(client, bucket):
    keys = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket, Prefix="out/").get("Contents", ())]
    bodies = [client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys if "part-" in key]
    return Counter(json.loads(line)["id"] for body in bodies for line in body.splitlines())


def test_every_object_is_answered_once_and_the_next_run_asks_nothing(batch, triton, endpoint, client, bucket, filled):
    source, output = filled
    triton.faults = poison(b"content 7")
    assert batch("--endpoint-url", endpoint, "--part-items", "8", source=source, output=output) == Exit.ITEMS_FAILED
    assert ids(client, bucket) == Counter(f"{number:03d}" for number in range(40))
    requests = triton.requests
    assert batch("--endpoint-url", endpoint, source=source, output=output) == Exit.ITEMS_FAILED
    assert triton.requests == requests
    assert main(["check", source, output, "--endpoint-url", endpoint]) == Exit.DONE
    assert main(["merge", source, output, "--endpoint-url", endpoint, "--to", f"s3://{bucket}/all/merged.jsonl"]) == Exit.DONE
    assert len(client.get_object(Bucket=bucket, Key="all/merged.jsonl")["Body"].read().splitlines()) == 40
    triton.faults = poison()
    assert batch("--endpoint-url", endpoint, "--retry-failed", source=source, output=output) == Exit.DONE
    assert ids(client, bucket) == Counter(f"{number:03d}" for number in range(40))


def test_an_object_that_changed_is_named(batch, endpoint, client, bucket, filled, capsys):
    source, output = filled
    batch("--endpoint-url", endpoint, source=source, output=output)
    client.put_object(Bucket=bucket, Key="in/003", Body=b"another")
    client.delete_object(Bucket=bucket, Key="in/004")
    assert batch("--endpoint-url", endpoint, source=source, output=output) == Exit.REFUSED
    assert "1 changed (003); 1 gone (004)" in capsys.readouterr().err


def test_objects_that_change_or_go_between_listing_and_reading_are_recorded_as_such(batch, triton, endpoint, client, bucket, filled):
    def change(number):
        if number == 1:
            client.put_object(Bucket=bucket, Key="in/038", Body=b"another")
            client.delete_object(Bucket=bucket, Key="in/039")

    triton.on_request = change
    source, output = filled
    assert batch("--endpoint-url", endpoint, "--in-flight", "1", source=source, output=output) == Exit.ITEMS_FAILED
    body = client.get_object(Bucket=bucket, Key="out/0-of-1/part-000001.jsonl")["Body"].read()
    messages = {record["id"]: record["error"]["message"] for line in body.splitlines() if "error" in (record := json.loads(line))}
    assert messages == {"038": "changed after it was listed", "039": "gone since it was listed"}


def test_a_bucket_that_is_not_there_is_named(batch, endpoint, filled, capsys):
    assert batch("--endpoint-url", endpoint, source=filled[0], output="s3://no-such-bucket/out") == Exit.REFUSED
    assert "NoSuchBucket" in capsys.readouterr().err


def test_a_store_that_cannot_be_reached_is_named(batch, client, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert batch("--endpoint-url", f"http://127.0.0.1:{port}", source="s3://a/in", output="s3://a/out") == Exit.NO_STORE
    assert "the store cannot be reached" in capsys.readouterr().err


@pytest.fixture
def broken(monkeypatch):
    """Every client of the code under test passes its requests through here: what it returns for an operation is sent back instead of the store's answer."""
    answers: dict[str, Any] = {}
    requests: list[tuple[str, Any]] = []
    make = s3.make_client

    def through(*arguments, **keys):
        client = make(*arguments, **keys)

        def before(request, operation_name, **_):
            requests.append((operation_name, request))
            status = answers.get(operation_name, lambda _: None)(request.url.rpartition("/")[2])
            return None if status is None else AWSResponse(request.url, status, HTTPHeaders(), Raw())

        client.meta.events.register("before-send.s3", lambda request, **_: before(request, operation_of(request)))
        return client

    monkeypatch.setattr("serving.batch.objects.s3.make_client", through)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return answers, requests


def operation_of(request):
    return f"{request.method} {'list' if 'list-type=2' in request.url else 'object'}"


class Raw(io.BytesIO):
    """The body of an answer, in which the store says nothing."""

    def stream(self):
        yield b""


@pytest.fixture
def run(batch, endpoint, filled):
    """The command on the forty objects."""
    source, output = filled
    return lambda *words: batch("--endpoint-url", endpoint, *words, source=source, output=output)


@pytest.mark.parametrize("operation", ["GET list", "PUT object", "GET object"])
def test_a_store_that_is_busy_is_tried_again_and_nothing_is_asked_twice(run, triton, client, bucket, broken, operation):
    broken[0][operation] = lambda name: 503 if name != "lock" and (triton.requests > 1 or operation == "GET list") else None
    assert run("--part-items", "8", "--in-flight", "1") == Exit.NO_STORE
    broken[0].clear()
    assert run() == Exit.DONE
    assert ids(client, bucket) == Counter(f"{number:03d}" for number in range(40))


def test_a_store_that_does_not_know_conditions_is_not_tried_again(run, triton, broken, capsys):
    broken[0]["PUT object"] = lambda _: 501
    assert run() == Exit.REFUSED
    assert "conditional writes" in capsys.readouterr().err
    assert triton.requests == 0


def test_a_run_that_is_whole_stays_so_when_its_lock_cannot_be_given_back(run, broken):
    broken[0]["DELETE object"] = lambda _: 503
    assert run() == Exit.DONE


def test_a_region_is_no_must(client, endpoint, monkeypatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert connect(endpoint).meta.region_name == s3.DEFAULT_REGION


def test_no_write_needs_more_than_the_oldest_s3_api(run, broken):
    """boto3's newer default adds checksums, in trailers too, which not every store reads."""
    assert run() == Exit.DONE
    writes = [request for operation, request in broken[1] if operation == "PUT object"]
    assert writes
    names = {name.lower() for request in writes for name in request.headers}
    assert not {name for name in names if "checksum" in name or "trailer" in name}


@pytest.mark.parametrize("url", ["store:9000", "http://", "not a url"])
def test_an_endpoint_that_can_be_none_is_named(batch, client, url, capsys):
    assert batch("--endpoint-url", url, source="s3://a/in", output="s3://a/out") == Exit.REFUSED
    assert "correct endpoint, region or AWS_PROFILE" in capsys.readouterr().err


def test_a_content_that_breaks_off_is_read_again(client, bucket):
    client.put_object(Bucket=bucket, Key="out/a", Body=b"whole")
    place = storage(client, bucket)
    [item] = place.items()
    whole, cut = place._get, [True, True]

    def cut_off(name, **condition):
        answer = whole(name, **condition)
        if cut and cut.pop():
            answer["Body"] = StreamingBody(io.BytesIO(b"who"), 5)
        return answer

    place._get = cut_off
    assert place.read(item) == b"whole"


def test_a_renewal_whose_answer_was_lost_is_no_loss_of_the_lock(client, bucket):
    place = storage(client, bucket, 0.6)
    put, renewals = place.put, []

    def repeated(name, content, **condition):
        etag = put(name, content, **condition)
        if "IfMatch" in condition:
            renewals.append(etag)
            return None
        return etag

    place.put = repeated
    with place.lock() as lock:
        deadline = time.monotonic() + 5
        while len(renewals) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        lock.check()
    assert len(renewals) >= 3


def storage(client, bucket, lease_seconds=60.0):
    return ObjectStorage(client, bucket, "out/", lease_seconds=lease_seconds)


def test_a_second_client_is_refused_while_the_first_renews(client, bucket):
    with storage(client, bucket, 3.0).lock() as first:
        with pytest.raises(LockError, match="is being written by another client"), storage(client, bucket, 3.0).lock():
            pass
        first.check()
    with storage(client, bucket).lock():
        pass


def test_the_lock_of_a_dead_client_is_taken_over_and_the_dead_one_can_write_no_more(client, bucket, monkeypatch):
    monkeypatch.setattr("serving.batch.object_lock.ObjectLock._keep", lambda self: None)
    dead = storage(client, bucket, 0.9).lock()
    lock = dead.__enter__()
    began = time.monotonic()
    with storage(client, bucket, 0.9).lock():
        assert time.monotonic() - began >= 0.9
        with pytest.raises(LockError, match="could not be renewed"):
            lock.check()
        dead.__exit__(None, None, None)
        assert client.get_object(Bucket=bucket, Key="out/lock")["Body"].read(), "the lock is the other's, and stays"


def test_a_lock_that_was_taken_over_is_noticed_at_its_next_renewal(client, bucket):
    with storage(client, bucket, 0.6).lock() as lock:
        client.put_object(Bucket=bucket, Key="out/lock", Body=json.dumps({"owner": "another"}).encode())
        deadline = time.monotonic() + 5
        while not lock._lost and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(LockError, match="was taken over by another client"):
            lock.check()


def test_a_part_is_created_once_whoever_writes_it(client, bucket):
    place = storage(client, bucket)
    assert place.create("part", b"one")
    assert place.create("part", b"one"), "the answer to a first attempt may be lost, and the attempt repeated"
    assert not place.create("part", b"other")


def test_a_store_that_ignores_conditions_is_refused(client, bucket):
    client.meta.events.register("before-sign.s3.PutObject", lambda request, **_: request.headers.__delitem__("If-None-Match"))
    with pytest.raises(BatchError, match="ignores `If-None-Match`"), storage(client, bucket).lock():
        pass
