"""The command over real HTTP: eight clients at once get the schedules of `simulate`, and Ctrl-C ends it."""

from __future__ import annotations

import http.client
import json
import os
import re
import runpy
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpusched_agents.any_policy import make_any_policy
from gpusched_env import InputError, Result, simulate
from gpusched_experiments.service.client import ServiceError, ServicePolicy, post
from instances import random_instance

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
from gpusched_experiments.service.server import url_of

ROOT = Path(__file__).parents[3]
NAMES = ("edf", "edf-preemptive", "sts-x", "atc")


@dataclass
class Service:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    line: str

    @property
    def url(self) -> str:
        """Give where it is."""
        found = re.search(r"http://127\.0\.0\.1:\d+", self.line)
        assert found, self.line
        return found[0]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    command = [sys.executable, "-m", "gpusched_experiments", "serve", "--port", "0", "--workers", "2", "--policies"]
    process = subprocess.Popen(
        [*command, ",".join(NAMES)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert process.stdout is not None
    yield Service(process, process.stdout.readline())
    process.kill()
    process.communicate()


@pytest.mark.parametrize("url", ["ftp://there/", "127.0.0.1:8000", "http://", "http://there:http", "http://[::1"])
def test_only_addresses_of_http_are_asked(url: str):
    with pytest.raises(InputError, match=r"url = .*an address such as http://"):
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


def same(one: Result, other: Result) -> bool:
    equal = all((getattr(one, n) == getattr(other, n)).all() for n in ("completion_s", "job_energy_eur", "log"))
    return equal and (one.energy_eur, one.tardiness_eur, one.rounds) == (
        other.energy_eur, other.tardiness_eur, other.rounds
    )  # fmt: skip


def test_eight_clients_at_once_get_the_schedules_of_simulate(service: Service):
    def run(client: int) -> bool:
        instance = random_instance(client, jobs=6, span_s=800.0, restart_s=10.0, kinds=client % 2 == 0)
        name = NAMES[client % len(NAMES)]
        asked = simulate(instance, ServicePolicy(service.url, name, instance), seed=client)
        return same(asked, simulate(instance, make_any_policy(name), seed=client))

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(run, range(8))) == [True] * 8


def test_a_refusal_reaches_the_client_with_what_the_service_said(service: Service):
    instance = random_instance(0)
    with pytest.raises(
        ServiceError, match=r"the service answered 422: .*policy.*one of edf, edf-preemptive, sts-x, atc"
    ):
        simulate(instance, ServicePolicy(service.url, "greedy", instance))


def test_the_example_drives_a_cluster_through_the_service(service: Service, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ask_the_service.py", "--url", service.url])
    runpy.run_path(str(ROOT / "examples" / "ask_the_service.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("4711: ")
    assert [line.endswith("as without the service: True") for line in printed[-2:]] == [True, True]


def test_the_request_of_the_page_is_answered(service: Service):
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    body = re.findall(r"--data '(.*?)'\n", page, re.DOTALL)[0]
    answer = json.loads(post(f"{service.url}/v1/decide", body.encode()))
    said = json.loads(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    assert {name: value for name, value in answer.items() if name in said} == said


def test_ctrl_c_ends_it_with_one_line_and_130(service: Service):
    place = service.url.removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=10.0)
    connection.request("GET", "/healthz")
    assert json.loads(connection.getresponse().read())["status"] == "ok"
    connection.close()
    service.process.send_signal(signal.SIGINT)
    out, said = service.process.communicate(timeout=30)
    assert (service.process.returncode, out, said) == (130, "", "error: interrupted\n")
