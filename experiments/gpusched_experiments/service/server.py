"""Running a service: processes that decide, and uvicorn before them."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from gpusched_env.errors import InputError
from gpusched_experiments.service.app import create_app
from gpusched_experiments.service.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from gpusched_experiments.service.catalogue import PolicyCatalogue
    from gpusched_experiments.service.limits import Limits

KEY_BYTES = 32


def serve(
    address: tuple[str, int],
    workers: int,
    policies: PolicyCatalogue,
    limits: Limits,
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
    signal.signal(signal.SIGTERM, _leave)
    bound = _bound(*address)
    pool = Pool(workers, policies, secrets.token_bytes(KEY_BYTES) if key is None else key, limits)
    try:
        app = create_app(pool, policies, limits, workers + limits.waiting + 1, pool.alive)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=10)
        host, port = bound.getsockname()[:2]
        line = _line(policies, url_of(host, port), workers)
        _Server(config, limits, lambda: say(line)).run(sockets=[bound])
    finally:
        pool.close()
        bound.close()


class _Server(uvicorn.Server):
    """Uvicorn that says when it can be asked, and ends connections on which a request does not go on."""

    def __init__(self, config: uvicorn.Config, limits: Limits, ready: Callable[[], None]) -> None:
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
    """Give the address of a service as clients take it: that of IPv6 in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _line(policies: PolicyCatalogue, url: str, workers: int) -> str:
    many = "" if workers == 1 else "s"
    return f"serving {len(policies.names)} policies at {url} with {workers} worker{many}; Ctrl-C ends it"


def _leave(number: int, _: FrameType | None) -> NoReturn:  # noqa: ARG001 - as handlers are called
    """End well: that is how process managers stop a service. Uvicorn passes the signal on once it has closed."""
    sys.exit(0)


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
