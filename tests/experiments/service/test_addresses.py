"""Addresses of a service: which are asked, and how a Unix socket is made and removed."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import pytest

from gpusched_experiments.service.client import post
from gpusched_experiments.service.listening import bound_to_path, closed, url_of
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
    with pytest.raises(ConnectionRefusedError):
        post(url, b"{}")


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
