"""Agents of the Hugging Face hub: with a stand-in for the download, and with a server of this machine as the hub."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from agent_folders import description, weights
from gpusched_agents.any_policy import make_any_policy
from gpusched_agents.files import hub
from gpusched_agents.files.storage import AGENT_FILES, find_agent, load_agent, save_agent
from gpusched_env.errors import MissingExtraError
from refusals import refused

PACKAGE = pytest.importorskip("huggingface_hub", reason='pip install "gpusched-env[hub]"')
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    hub.hub_folder.cache_clear()
    yield
    hub.hub_folder.cache_clear()


@pytest.fixture
def calls(tmp_path: Path, monkeypatch) -> list[tuple[object, ...]]:
    """Stand in for the download: `lab/agents` has an agent in its folder `small`, and 1 byte too many in `large`."""
    save_agent(tmp_path / "small", description(), weights())
    calls: list[tuple[object, ...]] = []

    def download(repo_id: str, filename: str, *, subfolder, revision, token, dry_run=False):
        calls.append((repo_id, filename, subfolder, revision, token, dry_run))
        path = tmp_path / (subfolder or "") / filename
        size = hub.MOST_BYTES + 1 if subfolder == "large" else path.stat().st_size
        return SimpleNamespace(commit_hash=COMMIT, file_size=size) if dry_run else str(path)

    monkeypatch.setattr(PACKAGE, "hf_hub_download", download)
    return calls


def test_only_the_two_files_of_an_agent_are_downloaded_both_of_one_commit_and_without_a_token(calls, tmp_path):
    folder = find_agent("agent:hf://lab/agents@v1/small")
    assert folder == tmp_path / "small"
    first, second = AGENT_FILES
    assert calls == [
        ("lab/agents", first, "small", "v1", False, True),
        ("lab/agents", first, "small", COMMIT, False, False),
        ("lab/agents", second, "small", COMMIT, False, True),
        ("lab/agents", second, "small", COMMIT, False, False),
    ]
    assert load_agent(folder)[0].name == description().name
    assert make_any_policy("agent:hf://lab/agents@v1/small").name == "agent:hf://lab/agents@v1/small"
    assert len(calls) == 4, "a process reads a branch once, so that all its runs are of one agent"


def test_a_file_that_is_too_large_is_not_downloaded(calls):
    with refused("agent", "hf://lab/agents/large", rf"at most 64 MiB .*large/agent\.json: {2**26 + 1} bytes"):
        find_agent("agent:hf://lab/agents/large")
    assert [call[-1] for call in calls] == [True]


def test_what_load_agent_checks_is_checked(calls, tmp_path):
    (tmp_path / "small" / AGENT_FILES[1]).write_bytes(b"less")
    with refused(str(tmp_path / "small" / AGENT_FILES[1]), "4 bytes"):
        make_any_policy("agent:hf://lab/agents/small")
    assert calls


@pytest.mark.parametrize(
    "text",
    ["hf://", "hf://lab", "hf://lab/", "hf://lab/a/../b", "hf://../a", "hf://lab/a@", "hf://lab/a/", "hf://lab/a@v 1",
     "hf://lab/a@x/../../b", "hf://lab/a/~", "hf://lab/ä", "hf://lab//a", "hf://-a/b", "hf://a/b\n"],
)  # fmt: skip
def test_a_name_of_another_form_is_refused_before_anything_is_asked(text, calls):
    with refused("agent", text, "hf://OWNER/REPO[@REVISION][/SUBFOLDER], a public folder with agent.json and"):
        find_agent(text)
    assert not calls


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"agents of hf:// need huggingface_hub.*gpusched-env\[hub\]"):
        find_agent("agent:hf://lab/agents")


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does, with the files of `lab/agents`; `large/agent.json` says that it is large."""

    files: dict[str, bytes]

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        repository, _, rest = self.path[1:].partition("/resolve/")
        revision, _, file = rest.partition("/")
        missing = next(
            (
                name
                for name, found in (
                    ("RepoNotFound", repository == "lab/agents"),
                    ("RevisionNotFound", revision in {"main", "v1", COMMIT}),
                    ("EntryNotFound", file in self.files or file.startswith("large/")),
                )
                if not found
            ),
            None,
        )
        content = self.files.get(file, b"") if missing is None else b""
        self.send_response(200 if missing is None else 404)
        if missing:
            self.send_header("X-Error-Code", missing)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(2**40 if file.startswith("large/") else len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


PROGRAM = """
import json, sys
from gpusched_agents.files.storage import find_agent, load_agent
for text in sys.argv[1:]:
    try:
        folder = find_agent(text)
        print(json.dumps([load_agent(folder)[0].name, sorted(path.name for path in folder.iterdir())]))
    except ValueError as error:
        print(json.dumps([type(error).__name__, error.allowed]))
"""


def answers(endpoint: str, home: Path, *texts: str, **more: str) -> list[list[str]]:
    """Find and load agents in a process of its own, which asks `endpoint` in place of the hub."""
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_TOKEN": "secret", **more}
    arguments = [sys.executable, "-c", PROGRAM, *texts]
    done = subprocess.run(arguments, env=os.environ | settings, capture_output=True, text=True, check=True, timeout=100)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_server_in_place_of_the_hub_gives_an_agent_that_is_then_there_without_it(tmp_path):
    save_agent(tmp_path / "agent", description(name="far"), weights())
    files = {file: (tmp_path / "agent" / file).read_bytes() for file in AGENT_FILES}
    held = {**{f"small/{file}": content for file, content in files.items()}, "half/agent.json": files["agent.json"]}
    requests: list[tuple[str, str, str | None]] = []

    class Asked(Hub):
        def _answer(self) -> None:
            requests.append((self.command, self.path, self.headers.get("authorization")))
            super()._answer()

    Asked.files = {**held, "small/code.py": b"raise SystemExit"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    texts = ("lab/agents/small", f"lab/agents@{COMMIT}/small", "lab/none/small", "lab/agents@v2/small", "lab/agents",
             "lab/agents/half", "lab/agents/large")  # fmt: skip
    try:
        found = answers(endpoint, tmp_path / "home", *(f"agent:hf://{text}" for text in texts))
    finally:
        server.shutdown()
        server.server_close()
    assert found[:2] == [["far", list(AGENT_FILES)]] * 2
    reasons = (
        "repository lab/none, revision main, small/agent.json: there is no such public repository",
        "repository lab/agents, revision v2, small/agent.json: there is no such revision",
        "repository lab/agents, revision main, agent.json: there is no such file",
        "repository lab/agents, revision main, half/weights.npz: there is no such file",
        f"repository lab/agents, revision main, large/agent.json: {2**40} bytes",
    )
    for (kind, allowed), reason in zip(found[2:], reasons, strict=True):
        assert kind == "InputError"
        assert f"({reason})" in allowed
    downloads = [path for _, path, _ in requests if "/resolve/" in path]
    assert not [path for path in downloads if not path.endswith(AGENT_FILES)]
    assert {token for *_, token in requests} == {None}, "the token of the user is not sent"

    offline = {"HF_HUB_OFFLINE": "1"}
    found = answers(endpoint, tmp_path / "home", "hf://lab/agents/small", "hf://lab/agents@v1/half", **offline)
    assert found[0] == ["far", list(AGENT_FILES)]
    assert "half/agent.json: the hub cannot be reached, and the file is not in the local cache" in found[1][1]
