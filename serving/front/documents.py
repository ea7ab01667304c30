"""What the OpenAPI document says of bodies that are read as they stream, and so have no parameters of their own."""

from typing import Any

BINARY = {"type": "string", "format": "binary"}
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": {"type": "object", "properties": {"file": BINARY}, "required": ["file"]}},
            "application/octet-stream": {"schema": BINARY},
        },
    }
}
BATCH_BODY: dict[str, Any] = {
    "description": 'Lines of {"id": ..., "b64": ...} or {"id": ..., "text": ...}, or the files of a form. Read the answer while you send: it is '
    'one line per item, in order, {"index", "id", "version", "outputs"} or {"index", "id", "error"}; the last line is {"end": ...}.',
    "requestBody": {
        "required": True,
        "content": {
            "application/x-ndjson": {"schema": BINARY, "example": '{"id": "a", "b64": "aGVsbG8="}\n{"id": "b", "text": "hello"}\n'},
            "multipart/form-data": {"schema": {"type": "object", "properties": {"file": {"type": "array", "items": BINARY}}}},
        },
    },
}
PREDICTION: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The model's outputs, one element as it is, several as a list; bytes that are no text as {b64}.",
        "content": {"application/json": {"example": {"model": "magika", "version": "1", "request_id": "7f3a", "outputs": {"label": "python"}}}},
    }
}
BATCH_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One line per item, and a last one that says whether all were read.",
        "content": {
            "application/x-ndjson": {
                "example": '{"index": 0, "id": "a", "version": "1", "outputs": {"label": "txt"}}\n{"end": {"items": 1, "failed": 0, "complete": true}}\n'
            }
        },
    }
}
_FAULT = {"error": {"code": "queue_full", "message": "16 requests are at the model and 64 wait", "retryable": True, "request_id": "7f3a"}}
_REASONS = {
    400: "The body, a parameter or a header cannot be used.",
    404: "Another model, or a version that is not served.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    422: "Never: bad parameters are answered 400.",
    429: "All places are taken; Retry-After says when to come back.",
    502: "The model failed on this input.",
    503: "The model takes no requests; Retry-After says when to come back.",
    504: "No answer in time.",
}
FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"description": reason, "content": {"application/json": {"example": _FAULT}}} for status, reason in _REASONS.items()
}
