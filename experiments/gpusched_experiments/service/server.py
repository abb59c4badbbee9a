"""Running a service: the door, which is HTTP in and JSON out, with uvicorn before it and processes behind it."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from gpusched_env.errors import InputError
from gpusched_env.version import VERSION
from gpusched_experiments.service.decision import PolicyCatalogue
from gpusched_experiments.service.fields import MOST_RECEIVING, RequestLimits, error_body
from gpusched_experiments.service.forecasting import FORECAST
from gpusched_experiments.service.openapi import DESCRIPTION, described, page
from gpusched_experiments.service.pool import Reply, WorkerPool

JSON = "application/json"
AGAIN = {"Retry-After": "1"}


def create_app(
    answer: Callable[[bytes], Reply],
    policies: PolicyCatalogue,
    limits: RequestLimits,
    threads: int = 1,
    alive: Callable[[], bool] = lambda: True,
) -> FastAPI:
    """Make the application.

    Args:
        answer: Gives the reply to a request; is called from several threads.
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

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        allowed = "POST /v1/decide, POST /v1/forecast, GET /v1/policies, /healthz, /docs and /openapi.json"
        return _error(error.status_code, "path", f"{request.method} {request.url.path}", allowed)

    bodies = _Bodies(limits, lambda body: asyncio.get_running_loop().run_in_executor(executor, answer, body))
    entries = json.dumps({"version": VERSION, "policies": policies.entries()}).encode()

    @app.post("/v1/decide", summary="Decide who runs where on what", response_class=Response)
    async def decide(request: Request) -> Response:
        return await bodies.replied(request)

    @app.post("/v1/forecast", summary="Forecast when jobs start and end, and what they cost", response_class=Response)
    async def forecast(request: Request) -> Response:
        return await bodies.replied(request, FORECAST)

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
    app.openapi = lambda: described(plain())  # type: ignore[method-assign]
    return app


class _Bodies:
    """Reads the bodies of requests: each in time, and only so many bytes of unfinished ones at a time; answers them."""

    def __init__(self, limits: RequestLimits, answer: Callable[[bytes], Awaitable[Reply]]) -> None:
        self._limits, self._answer, self._held = limits, answer, 0

    async def replied(self, request: Request, head: bytes = b"") -> Response:
        """Return the answer to a request, whose body comes after `head`."""
        body = await self.read(request)
        if isinstance(body, Response):
            return body
        reply = await self._answer(head + body)
        return Response(reply.body, reply.status, AGAIN if reply.status == 503 else None, JSON)

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


def _error(
    status: int, field: str | None, value: Any, allowed: str, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(error_body(field, value, allowed), status, headers, JSON)


KEY_BYTES = 32


def serve(
    address: tuple[str, int],
    workers: int,
    policies: PolicyCatalogue,
    limits: RequestLimits,
    key: bytes | None,
    say: Callable[[str], None],
) -> None:
    """Serve until a signal ends it: requests that are being answered are answered first.

    Args:
        address: Host and port; 0 takes a free one.
        workers: Processes that decide, ≥ 1.
        policies: The policies that may be asked.
        limits: Sizes and times.
        key: Signs what policies remember; services behind one load balancer need the same. None: one at random.
        say: Gets the one line that says where the service is, once it is ready.

    Raises:
        InputError: The address cannot be used.
        KeyboardInterrupt: It was ended by Ctrl-C.
        SystemExit: It was ended by SIGTERM; with exit code 0.
        WorkerError: A worker ended before it was ready.
    """
    # That is how process managers stop a service. Uvicorn passes the signal on once it has closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    bound = _bound(*address)
    pool = WorkerPool(workers, policies, secrets.token_bytes(KEY_BYTES) if key is None else key, limits)
    try:
        app = create_app(pool, policies, limits, workers + limits.waiting + 1, pool.alive)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=10)
        host, port = bound.getsockname()[:2]
        many = "" if workers == 1 else "s"
        at = f"at {url_of(host, port)} with {workers} worker{many}; Ctrl-C ends it"
        line = f"serving {len(policies.names)} policies {at}"
        _Server(config, limits, lambda: say(line)).run(sockets=[bound])
    finally:
        pool.close()
        bound.close()


class _Server(uvicorn.Server):
    """Uvicorn that says when it can be asked, and ends connections on which a request does not go on."""

    def __init__(self, config: uvicorn.Config, limits: RequestLimits, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._limits, self._ready = limits, ready
        self._seen: dict[Any, tuple[Any, float]] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, several times a second."""
        self._end_unfinished(time.monotonic())
        return await super().on_tick(counter)

    def _end_unfinished(self, now: float) -> None:
        """End the connections that have been at one header, or at one request and its answer, for too long."""
        seen = {}
        for connection in list(self.server_state.connections):
            request = getattr(connection, "cycle", None)
            is_open = request is not None and not request.response_complete
            which = (request, is_open)
            before, since = self._seen.get(connection, (which, now))
            seen[connection] = which, since if before == which else now
            if now - seen[connection][1] > (self._limits.answered_s if is_open else self._limits.receiving_s):
                connection.transport.abort()
        self._seen = seen


def url_of(host: str, port: int) -> str:
    """Return the address of a service as clients take it: that of IPv6 in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    """Take the address before anything is compiled; until the service is ready, connections are refused."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or "ports are from 0 to 65535"
        raise InputError("--host, --port", f"{host}:{port}", f"a free address of this machine ({reason})") from None
    return bound
