"""Bad input, by its field and value: wordings may change without a test that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from numpy.testing import assert_equal

from gpusched_env import InputError

ANY = object()


@contextmanager
def refused(field: str, value: object = ANY, allowed: str = "") -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an `InputError` of exactly this field and, where given, this value; `allowed` is a pattern in its text."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert caught.value.field == field, caught.value
    if value is not ANY:
        assert_equal(caught.value.value, value)
    assert re.search(allowed, caught.value.allowed), caught.value
