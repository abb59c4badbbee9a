"""Reports of jobs about their progress, as a driver takes them: from files, or over HTTP; and which it believes."""

from __future__ import annotations

import math
import os
import pwd
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_operations.live.progress import FOLDER

MOST_BYTES = 4096
AHEAD_S = 60.0
"""A report that is this far ahead of the driver's clock counts as made now."""
SAME = 1e-9
RECEIVE_S = 10.0
"""Longest time of one connection."""
MOST_CONNECTIONS = 32
"""Connections at once; further ones are closed."""
MOST_RESTARTS = 1_000_000


class Report(NamedTuple):
    """What a job said.

    Attributes:
        job: Its id.
        restarts: How often Slurm had started it again.
        epochs: Epochs done; any finite number.
        at_s: When it said so, by its own clock [s], ≥ 0.
    """

    job: str
    restarts: int
    epochs: float
    at_s: float

    @classmethod
    def of(cls, body: bytes) -> Self:
        try:
            found = parse_json(body)
            report = cls(str(found["job"]), int(found["restarts"]), float(found["epochs"]), float(found["at_s"]))
            if not 0 <= report.restarts <= MOST_RESTARTS or not math.isfinite(report.epochs):
                raise ValueError  # noqa: TRY301 - as what cannot be read
            if not 0.0 <= report.at_s < math.inf:
                raise ValueError  # noqa: TRY301
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError("report", body[:80].decode(errors="replace"), "what gpusched progress writes") from error
        return report

    def why_not(self, former: float | None, most: float) -> str:
        """Return why it is not believed, empty if it is; `former` is the last report in the same run."""
        if not math.isfinite(self.epochs) or self.epochs < 0.0:
            return f"{self.epochs} epochs"
        if self.epochs > most * (1.0 + SAME):
            return f"{self.epochs:g} epochs of at most {most:g}"
        if former is not None and self.epochs < former * (1.0 - SAME):
            return f"{self.epochs:g} epochs after {former:g} in the same run"
        return ""


class ProgressReports:
    """The newest report of each job.

    Args:
        folder: A folder that all jobs report to; None: each where it runs.
        clock: What tells the Unix time [s].

    Attributes:
        restarts_of: How often Slurm has started a job again; None: no job that is driven here.
    """

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.restarts_of: Callable[[str], int | None] = lambda _: None
        self._clock = clock
        self._posted: dict[tuple[str, int], Report] = {}
        self._ahead: dict[str, tuple[Report, float]] = {}  # what came from a clock that is ahead, and when
        self._lock = threading.Lock()

    def post(self, body: bytes) -> None:
        """Take a report that came over HTTP, of the present run of a job or of the next, which may not be seen yet."""
        report = Report.of(body)
        now_s, restarts = self._clock(), self.restarts_of(report.job)
        if restarts is None:
            raise InputError("job", report.job, "a job that is driven here")
        if not restarts <= report.restarts <= restarts + 1:
            raise InputError("restarts", report.restarts, f"{restarts}, as Slurm tells")
        if report.at_s > now_s + AHEAD_S:
            report = report._replace(at_s=now_s)
        with self._lock:
            self._posted[report.job, report.restarts] = report

    def newest(self, job: str, work_folder: str, user: str) -> Report | None:
        """Return the newest report of a job; None: there is none. One in a file counts before one over HTTP."""
        found = []
        for folder in ([self.folder] if self.folder is not None else []) + (
            [Path(work_folder) / FOLDER] if work_folder else []
        ):
            body = _content(folder / f"{job}.json", user)
            if body is not None:
                found.append(Report.of(body))
        found = [self._by_this_clock(each) for each in found if each.job == job]
        if found:
            return max(found, key=lambda each: (each.restarts, each.at_s))
        with self._lock:
            return self._posted.get((job, self.restarts_of(job) or 0))

    def forget(self, job: str) -> None:
        self._ahead.pop(job, None)
        with self._lock:
            for key in [key for key in self._posted if key[0] == job]:
                del self._posted[key]

    def _by_this_clock(self, report: Report) -> Report:
        """Return a report as made when it was first read, if its clock is ahead."""
        former, seen_s = self._ahead.get(report.job, (None, 0.0))
        if former == report:
            return report._replace(at_s=seen_s)
        now_s = self._clock()
        if report.at_s <= now_s + AHEAD_S:
            return report
        self._ahead[report.job] = report, now_s
        return report._replace(at_s=now_s)


def _content(path: Path, user: str) -> bytes | None:
    """Read a small file that belongs to a user, or to root; no link, and nothing that one could wait for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError("report", str(path), f"a file that can be read ({error.strerror})") from error
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        owners = {0}
        with suppress(KeyError):
            owners.add(pwd.getpwnam(user).pw_uid)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid not in owners:
            raise InputError("report", str(path), f"a file of {user}")
        body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise InputError("report", str(path), f"at most {MOST_BYTES:,} bytes")
    return body


class ProgressServer:
    """Takes reports at `POST /progress`, and tells metrics at `GET /metrics`.

    Args:
        reports: Where reports go.
        restarts_of: How often Slurm has started a job again; None: it is not driven here, and not heard.
        address: Host and port; port 0 takes a free one.
        metrics: Returns what `GET /metrics` tells; None: nothing.
    """

    def __init__(
        self,
        reports: ProgressReports,
        restarts_of: Callable[[str], int | None],
        address: tuple[str, int] = ("127.0.0.1", 0),
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        reports.restarts_of = restarts_of

        class Handler(_Handler):
            taken = staticmethod(reports.post)
            told = staticmethod(metrics) if metrics is not None else None

        try:
            self._server = _Server(address, Handler)
        except (OSError, OverflowError) as error:
            raise InputError("--progress-port", address[1], f"a free port ({error})") from error
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="progress", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Has so many connections at once, and each for so long."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        end = threading.Timer(RECEIVE_S, _shut, (request,))
        end.daemon = True
        try:
            end.start()
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._free.release()

    def handle_error(self, *_: Any) -> None:
        """Write nothing to stderr: a connection that broke off is no error here."""


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = RECEIVE_S
    taken: Callable[[bytes], None]
    told: Callable[[], bytes] | None = None

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != "/progress" or not length.isdigit() or int(length) > MOST_BYTES:
            self._answer(413 if self.path == "/progress" else 404, b"")
            return
        try:
            type(self).taken(self.rfile.read(int(length)))
        except InputError as error:
            self._answer(422, f"{error}\n".encode())
        else:
            self._answer(204, b"")

    def do_GET(self) -> None:
        told = type(self).told
        if self.path == "/metrics" and told is not None:
            self._answer(200, told(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._answer(404, b"")

    def log_message(self, *_: Any) -> None:
        """Write nothing to stderr."""

    def _answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(code)
        if code != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
