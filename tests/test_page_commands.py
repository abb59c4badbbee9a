"""The commands of the pages: each has only options that there are, and all that take a moment run."""

import re

import click
import pytest
import typer

from gpusched_experiments.cli.app import app
from page_commands import (
    BEFORE,
    BLOCK,
    NOT_RUN,
    PAGES,
    PLACEHOLDER,
    ROOT,
    SLOW,
    is_complete,
    page_commands,
    quick_commands,
)
from page_files import run

COMMANDS = page_commands()


def parse(words: list[str]) -> None:
    """Parse a command without running it; raise what click raises on bad options."""
    command: click.Command = typer.main.get_command(app)
    context = click.Context(command, info_name="gpusched")
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(context, words)
        context = click.Context(command, info_name=name, parent=context)
    command.make_context(context.info_name, words, parent=context.parent)


def test_the_commands_of_all_kinds_are_found():
    texts = {command.text for command in COMMANDS}
    assert {"compare --track busy", "tracks busy", "compare --seeds 7", "slurm release --partition gpu"} <= texts
    assert {command.into for command in COMMANDS} == {None, "mine.toml"}
    assert len(texts) > 150


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.page}: {command.text}")
def test_a_command_of_a_page_has_only_options_that_there_are(command):
    try:
        parse(command.words)
    except click.exceptions.Exit:
        assert "--help" in command.words
    except click.MissingParameter:
        assert command.inline
    except click.BadOptionUsage as error:
        assert command.inline and command.text.endswith(error.option_name)  # noqa: PT017, PT018
    except click.BadParameter:
        assert command.inline and PLACEHOLDER.search(command.text)  # noqa: PT018


def test_targets_of_make_and_programs_of_the_repository_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    blocks = "".join(block for page in PAGES for _, block in BLOCK.findall(page.read_text(encoding="utf-8")))
    targets = set(re.findall(r"^make ([\w-]+)", blocks, re.MULTILINE))
    assert {"test", "test-slow", "docs", "bench"} <= targets <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    programs = set(re.findall(r"\b(?:examples|scripts)/\w+\.\w+", blocks))
    assert "examples/ask_the_service.py" in programs
    assert [program for program in programs if not (ROOT / program).is_file()] == []


@pytest.mark.parametrize("pattern", [*NOT_RUN, *SLOW, *map(re.escape, BEFORE)])
def test_a_pattern_of_commands_is_still_one_of_a_command_of_a_page(pattern):
    assert [command for command in COMMANDS if is_complete(command) and re.fullmatch(pattern, command.text)]


@pytest.mark.parametrize("command", quick_commands(slow=False), ids=lambda command: command.text)
def test_a_command_of_a_page_runs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(command, tmp_path)
