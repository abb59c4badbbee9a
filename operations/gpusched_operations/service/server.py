"""Running a service: the door, which is HTTP in and JSON out, with uvicorn before it and processes behind it."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from gpusched_env.version import VERSION
from gpusched_operations.service.access import OPEN_PATHS, ApiKeys
from gpusched_operations.service.decision import PolicyCatalogue
from gpusched_operations.service.facts import policy_in
from gpusched_operations.service.fields import MOST_RECEIVING, RequestLimits
from gpusched_operations.service.forecasting import FORECAST
from gpusched_operations.service.listening import address_of, closed
from gpusched_operations.service.metrics import CONTENT_TYPE, Figure, ServiceMetrics
from gpusched_operations.service.middleware import AGAIN, CLOSE, JSON, RequestMiddleware, error_response, tell
from gpusched_operations.service.openapi import DESCRIPTION, described, page
from gpusched_operations.service.pool import BUSY, Reply, WorkerPool
from gpusched_operations.service.published_form import PATH as PUBLISHED_PATH
from gpusched_operations.service.published_form import reply_in_form

PATHS = ("/v1/decide", "/v1/forecast", PUBLISHED_PATH, "/v1/policies", *OPEN_PATHS)
"""What is counted by path."""
THERE = (
    f"POST /v1/decide, /v1/forecast and {PUBLISHED_PATH}, GET /v1/policies, /healthz, /metrics, /docs and /openapi.json"
)


def create_app(
    answer: Callable[[bytes], Reply],
    policies: PolicyCatalogue,
    limits: RequestLimits,
    threads: int = 1,
    alive: Callable[[], int] = lambda: True,
    *,
    keys: ApiKeys | None = None,
    crowded: Callable[[], bool] = lambda: False,
    figures: Collection[Figure] = (),
) -> FastAPI:
    """Make the application.

    Args:
        answer: Gives the reply to a request; is called from several threads.
        threads: Requests that may wait for an answer at one time, ≥ 1.
        keys: Those who may ask; by default everybody.
        figures: What `/metrics` says besides what is counted of requests.
    """
    executor = ThreadPoolExecutor(threads, thread_name_prefix="ask")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        executor.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="gpusched", version=VERSION, description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan
    )

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return error_response(error.status_code, "path", f"{request.method} {request.url.path}", THERE)

    bodies = _Bodies(limits)

    async def replied(request: Request, decide: Callable[[bytes], Reply]) -> Response:
        """Read the body, and answer it in a thread."""
        body = await bodies.read(request)
        if isinstance(body, Response):
            return body
        tell(request, size=len(body), policy=policy_in(body, policies.names))
        reply = await asyncio.get_running_loop().run_in_executor(executor, decide, body)
        tell(request, facts=reply.facts)
        return Response(reply.body, reply.status, AGAIN if reply.status == BUSY else None, JSON)

    @app.post("/v1/decide", summary="Decide who runs where on what", response_class=Response)
    async def decide(request: Request) -> Response:
        return await replied(request, answer)

    @app.post("/v1/forecast", summary="Forecast when jobs start and end, and what they cost", response_class=Response)
    async def forecast(request: Request) -> Response:
        return await replied(request, lambda body: answer(FORECAST + body))

    @app.post(PUBLISHED_PATH, summary="Decide for a request in the published form of GPUspb", response_class=Response)
    async def decide_in_form(request: Request) -> Response:
        def ask(body: bytes) -> Reply:
            tell(request, policy=policy_in(body, policies.names))
            return answer(body)

        return await replied(request, lambda body: reply_in_form(body, ask))

    plain = app.openapi
    app.openapi = lambda: described(plain())  # type: ignore[method-assign]
    metrics = ServiceMetrics(PATHS, figures)
    _add_reading(app, policies, alive, metrics)
    app.add_middleware(RequestMiddleware, keys=ApiKeys() if keys is None else keys, crowded=crowded, metrics=metrics)
    return app


def _add_reading(app: FastAPI, policies: PolicyCatalogue, alive: Callable[[], int], metrics: ServiceMetrics) -> None:
    """Add what is read and changes nothing."""
    entries = json.dumps({"version": VERSION, "policies": policies.entries()}).encode()

    @app.get("/v1/policies", summary="List the policies that may be asked", response_class=Response)
    async def list_policies() -> Response:
        return Response(entries, media_type=JSON)

    @app.get("/healthz", summary="Say whether the service can decide", response_class=Response)
    async def healthz() -> Response:
        if not alive():
            return error_response(503, None, None, "no worker is there; they are started again")
        return Response(json.dumps({"status": "ok", "version": VERSION}), media_type=JSON)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))

    @app.get("/metrics", summary="Give the figures of the service, for Prometheus", response_class=Response)
    async def read_metrics() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)


class _Bodies:
    """Reads the bodies of requests: each in time, and only so many bytes of unfinished ones at a time."""

    def __init__(self, limits: RequestLimits) -> None:
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
                        return error_response(413, "body", request.headers.get("content-length"), allowed)
                    if self._held > MOST_RECEIVING * limits.request_bytes:
                        return error_response(503, None, None, "too many large requests; try again in a second", AGAIN)
        except ClientDisconnect:
            return error_response(400, "body", None, "all of it; the client left before its end")  # nobody reads this
        except TimeoutError:
            allowed = f"all of it within {limits.receiving_s:g} s"
            return error_response(408, "body", f"{len(body):,} bytes", allowed, CLOSE)
        finally:
            self._held -= len(body)
        return bytes(body)


KEY_BYTES = 32


def serve(
    bound: socket.socket,
    workers: int,
    policies: PolicyCatalogue,
    limits: RequestLimits,
    key: bytes | None,
    say: Callable[[str], None],
    keys: ApiKeys | None = None,
) -> None:
    """Serve until a signal ends it: requests that are being answered are answered first.

    Args:
        bound: The socket to listen at, from `listening`; it is closed in the end.
        key: Signs what policies remember; services behind one load balancer need the same. None: one at random.
        say: Gets the one line that says where the service is, once it is ready.
        keys: Those who may ask; by default everybody.

    Raises:
        KeyboardInterrupt: It was ended by Ctrl-C.
        SystemExit: It was ended by SIGTERM; with exit code 0.
        WorkerError: The first worker ended before it was ready.
    """
    # That is how process managers stop a service. Uvicorn passes the signal on once it has closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address, pool = address_of(bound), None
    try:
        pool = WorkerPool(workers, policies, secrets.token_bytes(KEY_BYTES) if key is None else key, limits)
        many = "" if workers == 1 else "s"
        at = f"at {address} with {workers} worker{many}; Ctrl-C ends it"
        _Server.of_pool(pool, policies, keys, lambda: say(f"serving {len(policies.names)} policies {at}")).run([bound])
    finally:
        if pool is not None:
            pool.close()
        closed(bound, address)


def figures_of(pool: WorkerPool, connections: Callable[[], int]) -> tuple[Figure, ...]:
    return (
        Figure("waiting_requests", "Requests that wait for a worker.", lambda: pool.waiting),
        Figure("workers", "Worker processes that are ready.", pool.alive),
        Figure("workers_replaced_total", "Workers that ended or took too long.", lambda: pool.replaced),
        Figure("connections", "Open connections.", connections),
    )


class _Server(uvicorn.Server):
    """Uvicorn that says when it can be asked, and bounds how many connections there are and how long each may take."""

    def __init__(self, config: uvicorn.Config, limits: RequestLimits, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._limits, self._ready = limits, ready
        self._seen: dict[Any, tuple[Any, float]] = {}

    @classmethod
    def of_pool(
        cls, pool: WorkerPool, policies: PolicyCatalogue, keys: ApiKeys | None, ready: Callable[[], None]
    ) -> _Server:
        figures = figures_of(pool, lambda: len(made.server_state.connections))
        app = create_app(
            pool, policies, pool.limits, pool.most_at_once + 1, pool.alive, keys=keys, crowded=lambda: made.crowded(),  # noqa: PLW0108 - it is made below
            figures=figures,
        )  # fmt: skip
        made = cls(
            uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10), pool.limits, ready
        )
        return made

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        self._end_unfinished(time.monotonic())
        self.crowded()
        return await super().on_tick(counter)

    def crowded(self) -> bool:
        """End connections without a request, the oldest first, while there are too many; say whether there still are.

        So clients that send nothing, or an unfinished header, keep nobody out.
        """
        there = [each for each in self.server_state.connections if not each.transport.is_closing()]
        excess = len(there) - self._limits.connections
        if excess <= 0:
            return False
        now = time.monotonic()
        without = sorted(
            (each for each in there if not _is_open(each)), key=lambda each: self._seen.get(each, (None, now))[1]
        )
        for connection in without[:excess]:
            connection.transport.abort()
        return excess > len(without)

    def _end_unfinished(self, now: float) -> None:
        seen = {}
        for connection in list(self.server_state.connections):
            is_open = _is_open(connection)
            which = (getattr(connection, "cycle", None), is_open)
            before, since = self._seen.get(connection, (which, now))
            seen[connection] = which, since if before == which else now
            if now - seen[connection][1] > (self._limits.answered_s if is_open else self._limits.receiving_s):
                connection.transport.abort()
        self._seen = seen


def _is_open(connection: Any) -> bool:
    request = getattr(connection, "cycle", None)
    return request is not None and not request.response_complete
