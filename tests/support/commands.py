"""Commands of `gpusched`, run in this process, and how they end."""

from collections.abc import Iterable

from click.testing import Result
from typer.testing import CliRunner

from gpusched_experiments.cli.app import app


def gpusched(*arguments: object) -> Result:
    """Run a command; how it ends is not checked."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeeds(*arguments: object) -> Result:
    """Run a command that ends with exit code 0."""
    done = gpusched(*arguments)
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    return done


def assert_one_error(done: Result, words: Iterable[str], code: int = 2) -> None:
    """Check that a command ended with this code, printed nothing, and wrote one line of an error with these words."""
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
