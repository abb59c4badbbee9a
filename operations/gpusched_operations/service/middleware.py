"""What is done to every request: whether it may ask at all, then its line in the log, and what is counted of it."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpusched_operations.service.access import OPEN_PATHS, ApiKeys
from gpusched_operations.service.facts import DecisionFacts
from gpusched_operations.service.fields import error_body
from gpusched_operations.service.logs import log_event
from gpusched_operations.service.metrics import ServiceMetrics

JSON = "application/json"
AGAIN = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}
ID_HEADER = "X-Request-Id"
_FOUND = "gpusched"
_PLAIN_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)


def error_response(
    status: int, field: str | None, value: Any, allowed: str, headers: MutableMapping[str, str] | None = None
) -> Response:
    return Response(error_body(field, value, allowed), status, headers, JSON)


def tell(request: Request, **found: Any) -> None:
    """Keep what the log and the figures say of a request: `policy`, `size` [bytes], `facts`."""
    request.scope[_FOUND].update(found)


class RequestMiddleware:
    """Turns away who has no key, or comes when too many connections are open; logs and counts every request.

    Args:
        app: The application.
        keys: The keys that may ask; with none, everybody may.
        crowded: Says whether too many connections are open.
        metrics: Counts.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys, crowded: Callable[[], bool], metrics: ServiceMetrics) -> None:
        self._app, self._keys, self._crowded, self._metrics = app, keys, crowded, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or a message of another kind."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, headers = time.perf_counter(), Headers(scope=scope)
        found: dict[str, Any] = {}
        scope[_FOUND] = found
        given = headers.get(ID_HEADER, "")
        number = given if _PLAIN_ID.fullmatch(given) else secrets.token_hex(8)
        key = self._keys.name_of(headers.get("authorization")) if self._keys.digests else None
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[ID_HEADER] = number
            await send(message)

        try:
            refusal = None if scope["path"] in OPEN_PATHS else self._refusal(key)
            await (refusal or self._app)(scope, receive, watched)
        finally:
            self._tell(scope, status, time.perf_counter() - begin, found, {"id": number, "key": key})

    def _refusal(self, key: str | None) -> Response | None:
        if self._keys.digests and key is None:
            allowed = "Bearer and a key of this service"
            return error_response(401, "Authorization", None, allowed, {"WWW-Authenticate": "Bearer"} | CLOSE)
        if self._crowded():
            return error_response(503, None, None, "too many connections; try again in a second", AGAIN | CLOSE)
        return None

    def _tell(self, scope: Scope, status: int, seconds: float, found: dict[str, Any], who: dict[str, Any]) -> None:
        facts: DecisionFacts | None = found.get("facts")
        path, policy = scope["path"], found.get("policy", "")
        self._metrics.count(path, status, seconds, policy, found.get("size"), facts)
        counted = {} if facts is None else {"jobs": facts.jobs, "nodes": facts.nodes, "gpus": facts.gpus}
        counted |= {} if facts is None else dict(facts.actions)
        log_event(
            "request", logging.DEBUG if path in OPEN_PATHS else logging.INFO, **who, method=scope["method"],
            path=path[:200], status=status, ms=round(1000.0 * seconds, 3), policy=policy or None,
            bytes=found.get("size"), **counted,
        )  # fmt: skip
