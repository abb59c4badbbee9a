"""Bad input, by its field and value: wordings may change without a test that fails."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gpusched_env import InputError

ANY = object()


@contextmanager
def refused(field: str, value: object = ANY, allowed: str = "") -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an `InputError` of exactly this field and, if given, value; `allowed`: part of its text, or a pattern."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert caught.value.field == field, caught.value
    if value is not ANY:
        assert _plain(caught.value.value) == _plain(value), caught.value
    assert allowed in caught.value.allowed or re.search(allowed, caught.value.allowed), caught.value


def _plain(value: object) -> str:
    """Write a value as Python does, a scalar of NumPy as the number it holds."""
    return repr(value.item() if isinstance(value, np.generic) else value)
