"""The console script `gpusched`."""

from __future__ import annotations

import gc
import sys

from gpusched_experiments.cli import interruption

NAME = "gpusched"
NEEDED = ("rich", "typer")
OPERATIONS = "gpusched_operations"


def run() -> None:
    """Run the command line; without the extra `cli`, say how to install it and exit with 2."""
    interruption.listen()  # before all that takes time to import
    gc.disable()  # nothing that is imported is garbage; `Commands` enables it for the command
    try:
        _run()
    except SystemExit as stop:
        interruption.end(stop.code)
        raise
    except BaseException:
        interruption.end(None)
        raise
    finally:
        gc.enable()
    interruption.end(0)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        from gpusched_env.version import VERSION  # noqa: PLC0415

        sys.stdout.write(f"{NAME} {VERSION}\n")
        return
    if len(sys.argv) == 3 and sys.argv[1] == "progress" and sys.argv[2][:1].isdigit():
        import runpy  # noqa: PLC0415 - it stands in loops: no more is imported, and no package
        from importlib.util import find_spec  # noqa: PLC0415

        package = str(getattr(find_spec(OPERATIONS), "origin", None))
        sys.exit(runpy.run_path(package.replace("__init__.py", "live/progress.py"))["main"](sys.argv[2]))
    from importlib import import_module  # noqa: PLC0415

    try:
        app = import_module("gpusched_experiments.cli.app").app
        import_module("gpusched_experiments.cli.terminal").write_plainly(sys.stdout, sys.stderr)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        missing = import_module("gpusched_env.errors").MissingExtraError(
            str(error.name), "cli", "the commands of gpusched"
        )
        sys.stderr.write(f"error: {missing}\n")
        sys.exit(2)
    app(prog_name=NAME)


if __name__ == "__main__":
    run()
