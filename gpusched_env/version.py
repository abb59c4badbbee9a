"""The version of the one distribution that holds all five packages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "gpusched-env"
UNKNOWN = "0+unknown"


def installed_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return UNKNOWN


VERSION = installed_version()
