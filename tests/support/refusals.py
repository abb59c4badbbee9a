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
    """Expect an `InputError` of exactly this field and, if given, value; `allowed`: part of its text, or a pattern."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert caught.value.field == field, caught.value
    if value is not ANY:
        assert_equal(caught.value.value, value)
    assert allowed in caught.value.allowed or re.search(allowed, caught.value.allowed), caught.value
