"""Running a service: processes that decide, and uvicorn before them."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

import uvicorn

from gpusched_env.errors import InputError
from gpusched_experiments.service.app import create_app
from gpusched_experiments.service.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

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
        WorkerError: A worker ended before it was ready.
    """
    bound = _bound(*address)
    pool = Pool(workers, policies, secrets.token_bytes(KEY_BYTES) if key is None else key, limits)
    try:
        app = create_app(pool, policies, limits, threads=workers + limits.waiting + 1)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=10)
        host, port = bound.getsockname()[:2]
        say(f"gpusched serves {len(policies.names)} policies at http://{host}:{port} with {workers} workers; Ctrl-C ends it")
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        pool.close()
        bound.close()


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
