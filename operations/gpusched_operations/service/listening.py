"""Where a service listens: a port of this machine, or a Unix socket."""

from __future__ import annotations

import socket
import stat
from contextlib import suppress
from pathlib import Path

from gpusched_env.errors import InputError

UNIX = "unix:"
"""Begins the address of a Unix socket, such as unix:/run/gpusched/serve.sock."""
MODE = 0o660
"""Who may connect to a Unix socket: its owner and group."""


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def address_of(bound: socket.socket) -> str:
    name = bound.getsockname()
    return f"{UNIX}{name}" if isinstance(name, str) else url_of(*name[:2])


def bound_to_port(host: str, port: int) -> socket.socket:
    """Take an address before anything is compiled; until the service is ready, connections are refused."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or "ports are from 0 to 65535"
        raise InputError("--host, --port", f"{host}:{port}", f"a free address of this machine ({reason})") from None
    return bound


def bound_to_path(path: Path) -> socket.socket:
    """Take a Unix socket that its owner and group may use; one that nobody listens at any more is replaced."""
    family = getattr(socket, "AF_UNIX", None)
    if family is None:
        raise InputError("--unix", str(path), "no such option on this system; use --port")
    if _is_socket(path):
        with socket.socket(family) as asking:
            try:
                asking.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError):
                path.unlink(missing_ok=True)
            except OSError as error:
                raise InputError("--unix", str(path), f"a path that may be used ({error.strerror})") from None
            else:
                raise InputError("--unix", str(path), "a path where no service listens yet")
    bound = socket.socket(family)
    try:
        bound.bind(str(path))
        path.chmod(MODE)  # nobody can connect before it listens
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise InputError("--unix", str(path), f"a new path in a folder that can be written ({reason})") from None
    return bound


def closed(bound: socket.socket, address: str) -> None:
    """Close a socket, if it is not closed yet, and remove its file if it has one.

    Args:
        address: Its address, which a closed socket does not know any more.
    """
    bound.close()
    if address.startswith(UNIX):
        with suppress(OSError):
            Path(address.removeprefix(UNIX)).unlink()


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
