"""Options of commands that run for long: what they log, and where they tell their figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from gpusched_env.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from gpusched_operations.live.metrics import LiveMetrics
    from gpusched_operations.live.state import Clock

LogLevelOption = Annotated[
    str, typer.Option("--log-level", help="Least that is logged on stderr: debug, info, warning or error.")
]
LogFormatOption = Annotated[str, typer.Option("--log-format", help="Lines of the log: text or json.")]
DEFAULT_POLICY = "by default STS-X in which no job waits (sts-x:no-waiting), or sts-x where prices change"
QUIET = "error"
"""The level of commands that say on stdout what they do."""


def live_metrics(clock: Clock, *, drives: bool) -> LiveMetrics | None:
    try:
        module = import_module("gpusched_operations.live.metrics")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        return None
    made: LiveMetrics = module.LiveMetrics(clock, drives=drives)
    return made


def needed(metrics: LiveMetrics | None) -> LiveMetrics:
    if metrics is None:
        raise MissingExtraError("prometheus_client", "serve", "figures for Prometheus")
    return metrics


def address_of(option: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InputError(option, text, "a port such as 9101, or an address such as 0.0.0.0:9101")
    return host.strip("[]") or "127.0.0.1", int(port)
