"""The front's HTTP surface."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from serving.contract import FRONT_LIVE_PATH, FRONT_READY_PATH
from serving.front.batch import BatchResponse
from serving.front.documents import BATCH_ANSWER, BATCH_BODY, FAULTS, FILE_BODY, PREDICTION
from serving.front.faults import RequestFault, bad_request
from serving.front.observed import Observed, fault_response
from serving.front.options import Options, check_said_once, options
from serving.front.predict import check_model, predict, refuse_compressed
from serving.front.state import Front

Wishes = Annotated[Options, Depends(options)]


def create_app(front: Front) -> FastAPI:
    """The application of `front`; it holds nothing itself, so closing the front's model ends it."""
    app = FastAPI(title=f"Model {front.settings.model.name}", redoc_url=None, responses=FAULTS, dependencies=[Depends(check_said_once)])
    app.add_middleware(Observed, metrics=front.metrics)
    _add_faults(app)
    _add_health(app, front)

    async def answer(request: Request, wishes: Options) -> JSONResponse:
        result = await predict(front, request, wishes)
        model = {"model": front.settings.model.name, "version": result.version}
        return JSONResponse({**model, "request_id": request.state.request_id, "outputs": result.items[0]})

    @app.post("/predict", openapi_extra=FILE_BODY, responses=PREDICTION, summary="Predict for one file")
    async def predict_file(request: Request, wishes: Wishes) -> JSONResponse:
        return await answer(request, wishes)

    @app.post("/v1/models/{model}/predict", openapi_extra=FILE_BODY, responses=PREDICTION, summary="Predict for one file")
    async def predict_by_model(model: str, request: Request, wishes: Wishes) -> JSONResponse:
        check_model(front, model)
        return await answer(request, wishes)

    @app.post("/v1/models/{model}/batch", openapi_extra=BATCH_BODY, response_class=Response, responses=BATCH_ANSWER, summary="Predict for many items")
    async def predict_batch(model: str, request: Request, wishes: Wishes) -> BatchResponse:
        check_model(front, model)
        refuse_compressed(request)
        return BatchResponse(front, request, wishes)

    return app


def _add_health(app: FastAPI, front: Front) -> None:
    @app.get(FRONT_LIVE_PATH, include_in_schema=False)
    async def live() -> dict[str, bool]:
        return {"live": True}

    @app.get(FRONT_READY_PATH, include_in_schema=False)
    async def ready() -> JSONResponse:
        reason = await front.unready_because()
        body: dict[str, Any] = {"ready": reason is None} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(body, HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE)


def _add_faults(app: FastAPI) -> None:
    """Every refusal in one form, also those of the framework, which would show the caller's values back."""

    @app.exception_handler(RequestFault)
    async def refused(request: Request, fault: RequestFault) -> JSONResponse:
        request.state.note["fault"] = fault.code
        return fault_response(fault, request.state.request_id)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"]))
        return await refused(request, bad_request(f"{where}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    async def framework(request: Request, error: HTTPException) -> JSONResponse:
        code = HTTPStatus(error.status_code).name.lower()
        response = await refused(request, RequestFault(error.status_code, code, str(error.detail)))
        response.headers.update(error.headers or {})
        return response
