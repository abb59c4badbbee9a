"""Experiments: the command line, comparisons, published experiments, studies of learning, and certificates."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Give `__version__` when it is asked for: a command hears Ctrl-C before anything else is imported (PEP 562)."""
    if name == "__version__":
        from gpusched_env.version import VERSION  # noqa: PLC0415 - it brings all of gpusched_env

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
