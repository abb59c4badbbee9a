"""Many connections: those without a request make room, those with one are refused beyond the limit, health answers."""

import http.client
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gpusched_operations.service.access import API_KEY, ApiKeys
from gpusched_operations.service.client import ServiceError, post
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.listening import address_of, bound_to_path
from gpusched_operations.service.pool import Reply
from gpusched_operations.service.server import _Server
from refusals import refused
from waiting import eventually

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
from gpusched_operations.service.server import _is_open
from serving import serving

MOST = 4
HEADER = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
UNFINISHED_BODY = HEADER + b"\r\n{"


@pytest.fixture
def served() -> Iterator[tuple[str, _Server]]:
    made: list[_Server] = []
    with serving(lambda _: Reply(200, b"{}"), RequestLimits(connections=MOST), made=made) as where:
        yield where, made[0]


def ask(place: str, method: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(place, timeout=300.0)
    try:
        connection.request(method, path, b"{}" if method == "POST" else None)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def opened(stack: ExitStack, place: str, first: bytes, many: int) -> list[socket.socket]:
    host, _, port = place.partition(":")
    made = [stack.enter_context(socket.create_connection((host, int(port)), timeout=300.0)) for _ in range(many)]
    for connection in made:
        with suppress(ConnectionError):
            connection.sendall(first)
    return made


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("first", [b"", HEADER], ids=["nothing", "an unfinished header"])
def test_connections_without_a_request_beyond_the_limit_are_ended_the_oldest_first(served, first):
    place, server = served
    with ExitStack() as stack:
        old = opened(stack, place, first, MOST)
        eventually(lambda: len(server._seen) == MOST)
        opened(stack, place, first, MOST)
        assert [is_ended(each) for each in old] == [True] * MOST
        assert ask(place, "POST", "/v1/decide") == (200, b"{}")  # nobody is kept out


def test_requests_beyond_the_limit_are_refused_and_health_and_figures_still_answer(served):
    place, server = served
    with ExitStack() as stack:
        opened(stack, place, UNFINISHED_BODY, MOST)
        eventually(lambda: sum(map(_is_open, server.server_state.connections)) == MOST)
        status, said = ask(place, "POST", "/v1/decide")
        assert (status, b"too many connections" in said) == (503, True)
        assert ask(place, "GET", "/healthz")[0] == 200
        status, figures = ask(place, "GET", "/metrics")
        assert status == 200
        assert b'gpusched_service_requests_total{path="/v1/decide",policy="",status="503"} 1.0' in figures
    eventually(lambda: ask(place, "POST", "/v1/decide") == (200, b"{}"))


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s") / "serve.sock"


unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")


@unix
def test_a_unix_socket_is_for_owner_and_group_and_is_asked_like_a_port(path):
    bound = bound_to_path(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert address_of(bound) == f"unix:{path}"
    with serving(lambda body: Reply(200, b'{"length": %d}' % len(body)), RequestLimits(), bound):
        assert json.loads(post(f"unix:{path}/v1/decide", b"12345")) == {"length": 5}
        with pytest.raises(ServiceError, match="404"):
            post(f"unix:{path}/v1/nothing", b"")
        with refused("--unix", str(path)):
            bound_to_path(path)  # a service listens
    assert path.exists()


KEY, OTHER_KEY = "a1b2c3d4e5f60718", "0f1e2d3c4b5a6978"


def test_clients_send_the_key_of_their_environment(monkeypatch, tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# two, until the old one is out of use\nnew {OTHER_KEY}\n", encoding="utf-8")
    keys = ApiKeys.load(file, {API_KEY: KEY})
    monkeypatch.delenv(API_KEY, raising=False)
    with serving(lambda _: Reply(200, b"{}"), RequestLimits(), keys=keys) as place:
        with pytest.raises(ServiceError, match="401"):
            post(f"http://{place}/v1/decide", b"{}")
        for key in (KEY, f"{OTHER_KEY}\n"):
            monkeypatch.setitem(os.environ, API_KEY, key)
            assert post(f"http://{place}/v1/decide", b"{}") == b"{}"
        monkeypatch.setitem(os.environ, API_KEY, KEY[:-1])
        with pytest.raises(ServiceError, match="401"):
            post(f"http://{place}/v1/decide", b"{}")
        assert ask(place, "GET", "/healthz")[0] == 200
        assert ask(place, "GET", "/v1/policies")[0] == 401
        assert ask(place, "POST", "/optimizer/v5")[0] == 401
