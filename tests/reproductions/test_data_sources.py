"""The public data that experiments need: which files, with which content, and how they are fetched."""

import hashlib
import re
from pathlib import Path

import pytest

from commands import gpusched
from gpusched_reproductions.cli import reproduce as command
from gpusched_reproductions.data_sources import DATA, MISSING, NEEDED_BY, OTHER, SOURCES, WHOLE, DataFile, data_files
from refusals import refused

TEXT = b"job,seconds\n1,2\n"
ADDRESS = re.compile(r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/.+")


def published(folder: Path, content: bytes = TEXT, sha256: str | None = None, address: str | None = None) -> DataFile:
    """Return a file of which `content` is at its address."""
    there = folder / "published.csv"
    there.write_bytes(content)
    digest = hashlib.sha256(TEXT).hexdigest() if sha256 is None else sha256
    return DataFile("muri", "trace1.csv", digest, there.as_uri() if address is None else address)


def test_each_folder_has_a_source_the_commands_that_need_it_and_files_with_a_content():
    assert list(NEEDED_BY) == list(SOURCES)
    assert {file.folder for file in data_files()} == set(SOURCES)
    assert len({(file.folder, file.file) for file in data_files()}) == len(data_files())
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in data_files())
    assert all(ADDRESS.fullmatch(file.address) for file in data_files() if file.address)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no public data in {DATA}")
def test_the_files_that_are_here_have_their_content():
    assert {file.state() for file in data_files()} <= {WHOLE, MISSING}


def test_a_file_is_fetched_to_its_place_and_has_its_content(tmp_path):
    file, data = published(tmp_path), tmp_path / "data"
    assert file.state(data) == MISSING
    file.fetch(data)
    assert file.path(data).read_bytes() == TEXT
    assert file.state(data) == WHOLE
    file.path(data).write_bytes(TEXT + b"#")
    assert file.state(data) == OTHER


def test_what_has_another_content_or_cannot_be_read_is_not_written(tmp_path):
    data = tmp_path / "data"
    other = published(tmp_path, TEXT + b"#")
    with refused(other.address, hashlib.sha256(TEXT + b"#").hexdigest(), f"content with the SHA-256 {other.sha256}"):
        other.fetch(data)
    gone = published(tmp_path, address=(tmp_path / "gone.csv").as_uri())
    with refused(gone.address, allowed="an address that can be read"):
        gone.fetch(data)
    with refused("muri/trace1.csv", "", "a file that can be fetched"):
        published(tmp_path, address="").fetch(data)
    assert not data.exists()


def test_the_command_lists_what_is_there_and_fetches_what_is_published(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    made = DataFile("muri", "made.csv", "0" * 64, "")
    monkeypatch.setattr(command, "data_files", lambda: (published(tmp_path), made))
    before = gpusched("reproduce", "data")
    assert before.exit_code == 1
    assert "muri: 0 of 2 files, for reproduce antman; simulator/trace-data" in before.output
    assert "1 of the others can be fetched: gpusched reproduce data --fetch" in before.output
    fetched = gpusched("reproduce", "data", "--fetch")
    assert fetched.exit_code == 1
    assert (tmp_path / "shared" / "data" / "muri" / "trace1.csv").read_bytes() == TEXT
    assert "muri: 1 of 2 files" in fetched.output
    assert "  made.csv: missing" in fetched.output
    assert "1 of 2 files are in ../shared/data" in fetched.output
    monkeypatch.setattr(command, "data_files", lambda: (published(tmp_path),))
    assert gpusched("reproduce", "data").exit_code == 0
    (tmp_path / "shared" / "data" / "muri" / "trace1.csv").write_bytes(b"other")
    other = gpusched("reproduce", "data", "--fetch")
    assert "../shared/data/muri/trace1.csv: other content; remove it" in other.output
    assert "can be fetched" not in other.output


def test_an_address_that_cannot_be_read_does_not_keep_the_others_from_being_fetched(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    gone = published(tmp_path, address=(tmp_path / "gone.csv").as_uri())
    monkeypatch.setattr(command, "data_files", lambda: (gone, published(tmp_path)._replace(file="trace2.csv")))
    fetched = gpusched("reproduce", "data", "--fetch")
    assert "an address that can be read" in fetched.stderr
    assert "muri: 1 of 2 files" in fetched.stdout
    assert gpusched("reproduce", "cost", "--fetch").exit_code == 2
