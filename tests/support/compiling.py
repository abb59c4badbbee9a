"""No test of the core compiles a kernel of the packages: each worker would compile it again. A pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents", "gpusched_experiments", "gpusched_reproductions")


class Compiled(event.Listener):
    """The kernels of the packages that this process compiles, by name."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        """Note a kernel that is not on the disk."""
        function = event.data["dispatcher"].py_func
        if function.__module__.partition(".")[0] in PACKAGES:
            self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event: Any) -> None:
        """Do nothing: what is compiled is noted at its start."""


def nothing_compiled_in() -> Iterator[None]:
    """Fail at the end of the body if it compiled a kernel of the packages."""
    compiled = Compiled()
    with event.install_listener("numba:compile", compiled):
        yield
    if compiled.names:
        pytest.fail(f"compiled {len(compiled.names)} kernels that `gpusched warm-up` leaves out: {compiled.names}")


nothing_compiled = pytest.fixture(autouse=True)(nothing_compiled_in)
