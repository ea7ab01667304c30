"""The HTTP front of a model: the file is the body, the answer is JSON."""

import json

from loadtests.http_client import Response, post
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document, Prediction
from serving.contract import VERSION_HEADER


class FrontTarget(HttpTarget):
    """Sends the documents in turn to /predict, as files of their own."""

    def _request(self, document: Document) -> bytes:
        headers = {"Content-Type": "application/octet-stream", **({} if self.version is None else {VERSION_HEADER: str(self.version)})}
        return post("/predict", self.authority, headers, document.content)

    def _read(self, response: Response) -> Prediction:
        answer = json.loads(response.body)
        return Prediction(answer["version"], answer["outputs"][self.signature.output])
