"""Experiments: the command line, comparisons, reports, the leaderboard, and the service."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusched_experiments.report import compare, evaluate

__all__ = ["compare", "evaluate"]


def __getattr__(name: str) -> Any:
    """Return a name, and import it only then: a command handles Ctrl-C before it imports anything (PEP 562)."""
    if name == "__version__":
        from gpusched_env.version import VERSION  # noqa: PLC0415 - it brings all of gpusched_env

        return VERSION
    if name in __all__:
        from gpusched_experiments import report  # noqa: PLC0415

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for `dir`, `help` and TAB."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
