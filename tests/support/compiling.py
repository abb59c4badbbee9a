"""No test of the core compiles a kernel of the packages: each worker would compile it again. A pytest plugin."""

from collections.abc import Iterator
from typing import Any

import pytest
from numba.core import event

PACKAGES = tuple(
    f"gpusched_{name}" for name in ("env", "baselines", "agents", "experiments", "operations", "reproductions")
)


class Compiled(event.Listener):
    """The kernels of some packages that this process compiles, by name."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").partition(".")[0] in self.packages:  # None for what stands in no file
            self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event: Any) -> None:
        """Do nothing: what is compiled is noted at its start."""


def nothing_compiled_of(packages: tuple[str, ...]) -> Iterator[None]:
    """Fail at the end of the body if it compiled a kernel of these packages."""
    compiled = Compiled(packages)
    with event.install_listener("numba:compile", compiled):
        yield
    if compiled.names:
        pytest.fail(f"compiled {len(compiled.names)} kernels that `gpusched warm-up` leaves out: {compiled.names}")


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    yield from nothing_compiled_of(PACKAGES)
