"""Text recognition as it is served: a picture in, its text out, over HTTP and gRPC, with the answers of the package it comes from."""

import math
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as triton
from PIL import Image

from serving.contract import JSON_LENGTH_HEADER
from serving.model_check import sole_document
from serving.model_config import ServingSpec, model_manifest
from tests.serving.lines import lines, png
from tests.serving.repository import deploy
from tools.triton_process import TritonProcess, serving_rootfs

pytestmark = pytest.mark.serving

SERVING = ServingSpec.model_validate({"batching": {"maxBatchSize": 4}, "instances": {"count": 1}})


@pytest.fixture(scope="module")
def ocr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """The ensemble as a Deployment serves it: its models and no others, each under the config of the stack."""
    folder = tmp_path_factory.mktemp("ocr")
    with deploy(folder, "ocr", 1, SERVING) as server:
        server.wait_ready()
        yield server


def read(server: TritonProcess, content: bytes) -> httpx.Response:
    """The picture itself as the body, as curl sends it."""
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH_HEADER: "0"}
    return httpx.post(f"{server.http}/v2/models/ocr/infer", content=content, headers=headers, timeout=30)


def text_at_the_end(response: httpx.Response) -> str:
    """What a shell takes: everything behind the last zero byte, which belongs to the text's length."""
    assert response.status_code == httpx.codes.OK, response.text
    return response.content.rpartition(b"\0")[2].decode()


def over_grpc(server: TritonProcess, contents: list[bytes]) -> list[tuple[str, float]]:
    tensor = triton.InferInput("image", [len(contents), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[content] for content in contents], dtype=np.object_))
    with triton.InferenceServerClient(server.grpc) as client:
        answer = client.infer("ocr", [tensor], client_timeout=60)
    return [(text.decode(), float(score)) for text, score in zip(answer.as_numpy("text").ravel(), answer.as_numpy("score").ravel(), strict=True)]


class Reference:
    """The recogniser of rapidocr-onnxruntime 1.4.4, written anew from its source without OpenCV: one picture, no detection, no rotation."""

    def __init__(self, network: Path) -> None:
        self._session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
        table = self._session.get_modelmeta().custom_metadata_map["character"].splitlines()
        self._characters = ["blank", *table, " "]

    def read(self, picture: Image.Image) -> tuple[str, float]:
        image = np.asarray(picture)[:, :, ::-1]
        ratio = image.shape[1] / image.shape[0]
        width = int(48 * max(320 / 48, ratio))
        scaled = min(width, math.ceil(48 * ratio))
        padded = np.zeros((3, 48, width), dtype=np.float32)
        padded[:, :, :scaled] = (self._resize(image, scaled, 48).transpose(2, 0, 1) / 255 - 0.5) / 0.5
        [distributions] = self._session.run(None, {"x": padded[np.newaxis]})[0]
        classes, probabilities = distributions.argmax(axis=1), distributions.max(axis=1)
        kept = np.insert(classes[1:] != classes[:-1], 0, True) & (classes != 0)
        text = "".join(self._characters[index] for index in classes[kept])
        return text, float(probabilities[kept].mean()) if text else 0.0

    @staticmethod
    def _resize(image: np.ndarray, width: int, height: int) -> np.ndarray:
        """cv2.resize with its default, linear interpolation between the centres of pixels, edges repeated."""
        result = image.astype(np.float64)
        for axis, size in ((0, height), (1, width)):
            length = image.shape[axis]
            at = ((np.arange(size) + 0.5) * length / size - 0.5).clip(0, length - 1)
            low = np.floor(at).astype(int)
            high = (low + 1).clip(max=length - 1)
            part = (at - low).reshape([-1 if axis == other else 1 for other in range(3)])
            result = np.take(result, low, axis) * (1 - part) + np.take(result, high, axis) * part
        return result.round()


def test_a_file_in_a_text_out_and_the_answer_ends_in_it(ocr: TritonProcess) -> None:
    manifest = model_manifest("ocr")
    assert manifest.check is not None
    assert text_at_the_end(read(ocr, sole_document(manifest.check_inputs))) == manifest.check.expected


def test_lines_are_read_as_the_package_reads_them(ocr: TritonProcess) -> None:
    """Sixty lines: every text is the reference's, and but for its spaces the drawn one; the network puts some spaces in and leaves some out."""
    reference = Reference(serving_rootfs().path / "models" / "ocr_recognise" / "1" / "model.onnx")
    for drawn, picture in lines():
        [(text, score)] = over_grpc(ocr, [png(picture)])
        expected, expected_score = reference.read(picture)
        assert text == expected
        assert abs(score - expected_score) < 0.02
        assert text.replace(" ", "") == drawn.replace(" ", "")


def test_pictures_of_one_request_are_each_read(ocr: TritonProcess) -> None:
    drawn = list(lines())[:12:3]
    assert [text.rstrip() for text, _ in over_grpc(ocr, [png(picture) for _, picture in drawn])] == [text for text, _ in drawn]


def test_jpeg_is_read_too(ocr: TritonProcess, tmp_path: Path) -> None:
    text, picture = list(lines())[1]
    picture.save(tmp_path / "line.jpg", quality=90)
    assert text_at_the_end(read(ocr, (tmp_path / "line.jpg").read_bytes())).rstrip() == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no picture", "neither PNG nor JPEG"),
        (png(Image.new("L", (100, 30)))[:60], "cannot be read"),
        (png(Image.new("1", (5_000, 5_000))), "5000 x 5000 pixels"),
        (png(Image.new("1", (4_000, 10))), "times as wide as high"),
    ],
)
def test_what_is_no_line_of_text_is_answered_with_the_reason(ocr: TritonProcess, content: bytes, reason: str) -> None:
    answer = read(ocr, content)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert reason in answer.json()["error"]


def test_a_picture_without_text_has_an_empty_text_and_no_score(ocr: TritonProcess) -> None:
    assert over_grpc(ocr, [png(Image.new("L", (1, 1)))]) == [("", 0.0)]
