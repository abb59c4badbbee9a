"""The command over real HTTP: eight clients at once get the schedules of simulate, and Ctrl-C ends it."""

import http.client
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpusched_agents.any_policy import make_any_policy
from gpusched_env import Result, simulate
from gpusched_operations.service.client import ServiceError, ServicePolicy, post
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.pool import Reply
from gpusched_operations.service.server import _Server
from instances import random_instance
from waiting import eventually

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
from serving import serving

ROOT = Path(__file__).parents[2]
NAMES = ("edf", "edf:preemptive", "sts-x", "atc")


@dataclass
class Service:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    line: str

    @property
    def url(self) -> str:
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


def same(one: Result, other: Result) -> bool:
    equal = all((getattr(one, n) == getattr(other, n)).all() for n in ("completion_s", "job_energy_eur", "log"))
    return equal and (one.energy_eur, one.tardiness_eur, one.rounds) == (
        other.energy_eur, other.tardiness_eur, other.rounds
    )  # fmt: skip


def test_eight_clients_at_once_get_the_schedules_of_simulate(service):
    def run(client: int) -> bool:
        instance = random_instance(client, jobs=6, span_s=800.0, restart_s=10.0, kinds=client % 2 == 0)
        name = NAMES[client % len(NAMES)]
        asked = simulate(instance, ServicePolicy(service.url, name, instance), seed=client)
        return same(asked, simulate(instance, make_any_policy(name), seed=client))

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(run, range(8))) == [True] * 8


def test_a_refusal_reaches_the_client_with_what_the_service_said(service):
    instance = random_instance(0)
    with pytest.raises(
        ServiceError, match=r"the service answered 422: .*policy.*one of edf, edf:preemptive, sts-x, atc"
    ):
        simulate(instance, ServicePolicy(service.url, "greedy", instance))


def test_the_example_drives_a_cluster_through_the_service(service, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ask_the_service.py", "--url", service.url])
    runpy.run_path(str(ROOT / "examples" / "ask_the_service.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("4711: ")
    assert [line.endswith("as without the service: True") for line in printed[-2:]] == [True, True]


def test_the_request_of_the_page_is_answered(service):
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    body = re.findall(r"--data '(.*?)'\n", page, re.DOTALL)[0]
    answer = json.loads(post(f"{service.url}/v1/decide", body.encode()))
    said = json.loads(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    assert {name: value for name, value in answer.items() if name in said} == said


@pytest.fixture(scope="module")
def quick_to_end() -> Iterator[tuple[int, _Server]]:
    """Serve in a thread of this process, with half a second for a request to come; give the port and the server."""
    made: list[_Server] = []
    limits = RequestLimits(receiving_s=0.5, waiting_s=0.5, decision_s=0.5)
    with serving(lambda _: Reply(200, bytes(32 * 2**20)), limits, made=made) as place:
        yield int(place.partition(":")[2]), made[0]


HEADER = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\n"
UNFINISHED = {
    "nothing": (b"", b""),
    "a header": (HEADER, b""),
    "a header, byte after byte": (HEADER + b"X: ", b"x"),
    "a body": (HEADER + b"Content-Length: 1000\r\n\r\n{", b""),
    "a body, byte after byte": (HEADER + b"Content-Length: 1000\r\n\r\n{", b" "),
    "a body after its answer": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b" "),
    "a second header": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + HEADER + b"X: ", b"x"),
}


@pytest.mark.parametrize("what", UNFINISHED)
def test_a_connection_whose_request_does_not_end_is_ended(quick_to_end, what):
    first, more = UNFINISHED[what]
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", quick_to_end[0]), timeout=0.1) as connection:
        connection.sendall(first)
        while time.monotonic() - begin < 300.0:
            try:
                if more:
                    connection.sendall(more)
                if not connection.recv(2**16):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("it is still open")
    assert time.monotonic() - begin > 0.4


def test_a_connection_on_which_nobody_reads_the_answer_is_ended(quick_to_end):
    with socket.create_connection(("127.0.0.1", quick_to_end[0]), timeout=300.0) as connection:
        connection.sendall(HEADER + b"Content-Length: 2\r\n\r\n{}")
        eventually(lambda: len(quick_to_end[1].server_state.connections) == 1)
        eventually(lambda: not quick_to_end[1].server_state.connections)
        read = 0
        with suppress(ConnectionError):
            while part := connection.recv(2**20):
                read += len(part)
    assert 0 < read < 32 * 2**20


def test_others_are_answered_while_many_requests_are_unfinished(quick_to_end):
    with ExitStack() as opened:
        for _ in range(50):
            connection = socket.create_connection(("127.0.0.1", quick_to_end[0]), timeout=300.0)
            opened.enter_context(connection).sendall(HEADER)
        asked = http.client.HTTPConnection("127.0.0.1", quick_to_end[0], timeout=300.0)
        asked.request("GET", "/healthz")
        assert asked.getresponse().status == 200
        asked.close()


def test_ctrl_c_ends_it_with_one_line_and_130(service):
    place = service.url.removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=300.0)
    connection.request("GET", "/healthz")
    assert json.loads(connection.getresponse().read())["status"] == "ok"
    connection.close()
    service.process.send_signal(signal.SIGINT)
    out, said = service.process.communicate(timeout=300)
    assert (service.process.returncode, out, said) == (130, "", "error: interrupted\n")
