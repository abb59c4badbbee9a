"""The error that a missing optional package raises."""

from __future__ import annotations


class MissingExtraError(ImportError):
    """An optional package is not installed: names it and says how to install it.

    Args:
        package: The package that is missing.
        extra: The extra of this distribution that brings it.
        purpose: What it is needed for, as a noun phrase.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        super().__init__(f'{purpose} need {package}; install it with: pip install "gpusched-env[{extra}]"')

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """Return what rebuilds the error in another process."""
        return type(self), (self.package, self.extra, self.purpose)
