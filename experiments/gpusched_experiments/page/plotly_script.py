"""plotly's JavaScript, as the package brings it."""

from __future__ import annotations

from importlib import import_module

from gpusched_env.errors import MissingExtraError


def plotly_script() -> str:
    """Give the whole of plotly.js, as it can stand in a `script` element.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    try:
        offline = import_module("plotly.offline")
    except ModuleNotFoundError as error:
        raise MissingExtraError("plotly", "report", "report pages") from error
    script: str = offline.get_plotlyjs()
    return script.replace("</script", r"<\/script")
