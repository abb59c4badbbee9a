"""Fixtures of the tests of agents."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Set torch to one thread: sums are reproducible, and parallel tests do not wait for each other."""
    torch = pytest.importorskip("torch", reason="needs the extra `agents`")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
