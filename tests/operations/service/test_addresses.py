"""Addresses of a service: which are asked, and how a Unix socket is made and removed."""

from __future__ import annotations

import http.client
import io
import socket
from pathlib import Path

import pytest

from commands import gpusched
from gpusched_env.errors import RunError
from gpusched_operations.live.asking import ask_service
from gpusched_operations.service.client import ServiceError, post
from gpusched_operations.service.listening import bound_to_path, closed, url_of
from refusals import refused

pytest.importorskip("uvicorn", reason="needs the extra `serve`")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://there/",
        "127.0.0.1:8000",
        "http://",
        "http://there:http",
        "http://[::1",
        "unix:",
        "unix:s/v1/decide",
        "unix:/",
    ],
)
def test_only_addresses_of_http_and_whole_paths_of_sockets_are_asked(url: str):
    with refused("url", url):
        post(url, b"{}")


@pytest.mark.parametrize(
    ("url", "kind", "host", "port"),
    [
        ("https://there/v1/decide", http.client.HTTPSConnection, "there", 443),
        ("http://there/v1/decide", http.client.HTTPConnection, "there", 80),
        (url_of("::1", 8000), http.client.HTTPConnection, "::1", 8000),
    ],
)
def test_an_address_says_how_and_where(monkeypatch: pytest.MonkeyPatch, url: str, kind: type, host: str, port: int):
    def connect(connection: http.client.HTTPConnection) -> None:
        assert (type(connection), connection.host, connection.port) == (kind, host, port)
        raise ConnectionRefusedError

    monkeypatch.setattr(http.client.HTTPConnection, "connect", connect)
    monkeypatch.setattr(http.client.HTTPSConnection, "connect", connect)
    with pytest.raises(ServiceError, match="no whole answer") as told:
        post(url, b"{}")
    assert told.value.status == 0


HTTP = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "nothing": b"",
    "a reset": ConnectionResetError("reset"),
    "too late": TimeoutError("timed out"),
    "no HTTP": b"hello\r\n\r\n",
    "cut short": HTTP + b"Content-Length: 1000\r\n\r\n{",
    "cut in a chunk": HTTP + b"Transfer-Encoding: chunked\r\n\r\n40\r\n{",
    "no length of a chunk": HTTP + b"Transfer-Encoding: chunked\r\n\r\nhello\r\n",
    "a header without an end": HTTP + b"x: " + b"y" * 70_000,
    "no JSON": HTTP + b"\r\nhello",
    "nested deeply": HTTP + b"\r\n" + b"[" * 100_000,
    "no UTF-8": HTTP + b"\r\n\xff",
    "a list": HTTP + b"\r\n[]",
    "jobs that are none": HTTP + b'\r\n{"jobs": [1]}',
    "jobs without what they have": HTTP + b'\r\n{"jobs": [{}]}',
    "an error": b"HTTP/1.1 500 Internal Server Error\r\n\r\noops",
    "elsewhere": b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n",
}


class Answered:
    """Stands for a socket at whose other end a service sends one thing."""

    def __init__(self, answer: bytes | OSError) -> None:
        self._answer = answer

    def sendall(self, _: bytes) -> None: ...

    def close(self) -> None: ...

    def makefile(self, _: str) -> io.BytesIO:
        if isinstance(self._answer, OSError):
            raise self._answer
        return io.BytesIO(self._answer)


def answering(monkeypatch: pytest.MonkeyPatch, answer: bytes | OSError) -> None:
    def connect(connection: http.client.HTTPConnection) -> None:
        connection.sock = Answered(answer)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", connect)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_whatever_a_service_sends_that_is_no_answer_is_one_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes | OSError
):
    answering(monkeypatch, answer)
    with pytest.raises(ServiceError) as told:
        ask_service("http://there")({})
    assert isinstance(told.value, RunError)
    assert "\n" not in str(told.value)
    file = tmp_path / "request.json"
    file.write_text("{}")
    done = gpusched("forecast", file, "--url", "http://there")
    error = str(told.value).replace("/v1/decide", "/v1/forecast")
    assert (done.exit_code, done.stderr) == (1, f"error: {error}\n")


def test_a_field_that_a_service_refuses_is_an_error_of_the_request(monkeypatch: pytest.MonkeyPatch):
    refusal = b'{"error": "...", "field": "jobs[0].due_s", "value": -1, "allowed": "a number > 0"}'
    answering(monkeypatch, b"HTTP/1.1 422 No\r\n\r\n" + refusal)
    with refused("jobs[0].due_s", -1):
        ask_service("http://there")({})


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s") / "serve.sock"


unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")


@unix
def test_a_socket_that_nobody_listens_at_is_replaced_and_removed_in_the_end(path: Path):
    bound_to_path(path).close()
    assert path.exists()
    bound = bound_to_path(path)
    bound.close()  # as uvicorn does at its end
    closed(bound, f"unix:{path}")
    assert not path.exists()


@unix
def test_a_file_is_not_replaced(path: Path):
    path.write_text("mine", encoding="utf-8")
    with refused("--unix", str(path)):
        bound_to_path(path)
    assert path.read_text(encoding="utf-8") == "mine"
    with refused("--unix"):
        bound_to_path(path.parent / "nowhere" / "serve.sock")
