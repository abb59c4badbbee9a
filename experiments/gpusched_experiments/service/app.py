"""The door: HTTP in, bytes to whoever decides, JSON out."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from gpusched_env.version import VERSION
from gpusched_experiments.service import problems
from gpusched_experiments.service.limits import MOST_RECEIVING
from gpusched_experiments.service.openapi import DESCRIPTION, described, page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from gpusched_experiments.service.catalogue import PolicyCatalogue
    from gpusched_experiments.service.limits import Limits
    from gpusched_experiments.service.pool import Answering

JSON = "application/json"
AGAIN = {"Retry-After": "1"}


def create_app(
    answer: Answering,
    policies: PolicyCatalogue,
    limits: Limits,
    threads: int = 1,
    alive: Callable[[], bool] = lambda: True,
) -> FastAPI:
    """Make the application.

    Args:
        answer: Who decides.
        policies: The policies that may be asked.
        limits: Sizes and times.
        threads: Requests that may wait for an answer at one time, ≥ 1.
        alive: Says whether anything is there that decides.
    """
    executor = ThreadPoolExecutor(threads, thread_name_prefix="ask")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        executor.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="gpusched", version=VERSION, description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    _add_errors(app)
    bodies = _Bodies(limits)
    entries = json.dumps({"version": VERSION, "policies": policies.entries()}).encode()

    @app.post("/v1/decide", summary="Decide who runs where on what", response_class=Response)
    async def decide(request: Request) -> Response:
        body = await bodies.read(request)
        if isinstance(body, Response):
            return body
        reply = await asyncio.get_running_loop().run_in_executor(executor, answer, body)
        return Response(reply.body, reply.status, AGAIN if reply.status == 503 else None, JSON)

    @app.get("/v1/policies", summary="List the policies that may be asked", response_class=Response)
    async def list_policies() -> Response:
        return Response(entries, media_type=JSON)

    @app.get("/healthz", summary="Say whether the service can decide", response_class=Response)
    async def healthz() -> Response:
        if not alive():
            return _error(503, None, None, "no worker is there; they are started again")
        return Response(json.dumps({"status": "ok", "version": VERSION}), media_type=JSON)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))

    plain = app.openapi

    def openapi() -> dict[str, Any]:
        return described(plain())

    app.openapi = openapi  # type: ignore[method-assign]
    return app


class _Bodies:
    """Reads the bodies of requests: each in time, and only so many bytes of unfinished ones at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._held = limits, 0

    async def read(self, request: Request) -> bytes | Response:
        """Return the body, or the answer that says why it was not read to its end."""
        limits, body = self._limits, bytearray()
        try:
            async with asyncio.timeout(limits.receiving_s):
                async for chunk in request.stream():
                    body += chunk
                    self._held += len(chunk)
                    if len(body) > limits.request_bytes:
                        allowed = f"at most {limits.request_bytes:,} bytes"
                        return _error(413, "body", request.headers.get("content-length"), allowed)
                    if self._held > MOST_RECEIVING * limits.request_bytes:
                        return _error(503, None, None, "too many large requests; try again in a second", AGAIN)
        except ClientDisconnect:
            return _error(400, "body", None, "all of it; the client left before its end")  # nobody reads this
        except TimeoutError:
            allowed = f"all of it within {limits.receiving_s:g} s"
            return _error(408, "body", f"{len(body):,} bytes", allowed, {"Connection": "close"})
        finally:
            self._held -= len(body)
        return bytes(body)


def _add_errors(app: FastAPI) -> None:
    """Give all errors in one form."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        allowed = "POST /v1/decide, GET /v1/policies, /healthz, /docs and /openapi.json"
        return _error(error.status_code, "path", f"{request.method} {request.url.path}", allowed)


def _error(
    status: int, field: str | None, value: Any, allowed: str, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(problems.body(field, value, allowed), status, headers, JSON)
