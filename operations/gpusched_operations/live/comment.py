"""What owners say of their jobs in a comment: `gpusched app=NAME epochs=90 due=+12h gpus=1,2,4 checkpoint=yes`."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from gpusched_env.errors import InputError
from gpusched_operations.live.state import WORD
from gpusched_operations.service.fields import Fields, Name, input_error

LATEST_S = 2.2e11
"""The latest due date: in the year 8941. No date after 9999 can be written."""

_SIZE = re.compile(r"(?:(\d{1,6})\*)?(\d{1,6})", re.ASCII)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.ASCII)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError("", value, "a finite number")
    return found


def _yes(value: Any) -> Any:
    if isinstance(value, str):
        if value not in ("yes", "no"):
            raise InputError("", value, "yes or no")
        return value == "yes"
    return value


def _sizes(value: Any) -> Any:
    """Return numbers of GPUs as pairs of nodes and GPUs of each."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    found = []
    for each in listed:
        if isinstance(each, tuple):
            found.append(each)
            continue
        match = _SIZE.fullmatch(str(each)) if not isinstance(each, bool) else None
        if match is None or int(match[2]) < 1 or int(match[1] or 1) < 1:
            raise InputError("", value, "numbers of GPUs such as 1,2,4, or 2*8 for 8 on each of 2 nodes")
        found.append((int(match[1] or 1), int(match[2])))
    return tuple(dict.fromkeys(found))


def _names(value: Any) -> Any:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(v, str) and v for v in listed):
        raise InputError("", value, "names of GPU types such as v100,a100, or any")
    return tuple(listed)


def _due(value: Any) -> Any:
    text = value.isoformat() if hasattr(value, "isoformat") else value
    if isinstance(text, str):
        seconds_of_due(text, 0.0, 1.0, "")
    return text


Number = Annotated[float, BeforeValidator(_number), Field(gt=0.0, le=1e12)]
NotBelowZero = Annotated[float, BeforeValidator(_number), Field(ge=0.0, le=1e12)]
YesNo = Annotated[bool, BeforeValidator(_yes)]


class JobSpec(Fields):
    """What is said of a job; None: nothing is.

    Each may also be written as a text, as comments have it.
    """

    app: Name | None = Field(default=None, description="Name of its application.")
    epochs: Number | None = Field(default=None, description="Most epochs that it needs.")
    due: Annotated[str, BeforeValidator(_due)] | None = Field(
        default=None, description="Due date: a local time such as 2026-11-27T08:00, or after its submission: +12h."
    )
    weight: NotBelowZero | None = Field(default=None, description="What a second of delay costs [EUR/s].")
    gpus: Annotated[tuple[tuple[int, int], ...], BeforeValidator(_sizes)] | None = Field(
        default=None, description="Numbers of GPUs that it may be given."
    )
    types: Annotated[tuple[str, ...], BeforeValidator(_names)] | None = Field(
        default=None, description="GPU types that it may be given, or any."
    )
    checkpoint: YesNo | None = Field(default=None, description="Whether it may be stopped and continued.")
    resize: YesNo | None = Field(default=None, description="Whether it may continue on other GPUs.")
    restart: NotBelowZero | None = Field(default=None, description="Seconds without progress after a change.")


def spec_of_comment(comment: str, where: str) -> tuple[bool, JobSpec]:
    """Return whether a comment has the word `gpusched`, and what the list of `field=value` after it says."""
    words = comment.split()
    if WORD not in words:
        return False, JobSpec()
    found: dict[str, str] = {}
    for word in words[words.index(WORD) + 1 :]:
        name, equals, value = word.partition("=")
        if not equals or name not in JobSpec.model_fields:
            raise InputError(where, word, f"fields such as epochs=90; there are {', '.join(JobSpec.model_fields)}")
        if name in found:
            raise InputError(where, word, "each field once")
        found[name] = value
    try:
        return True, JobSpec.model_validate(found)
    except ValidationError as error:
        wrong = input_error(error)
        raise InputError(f"{where}: {wrong.field}", wrong.value, wrong.allowed) from None


def seconds_of_due(text: str, submit_s: float, speed: float, where: str) -> float:
    """Return a due date as a Unix time [s].

    Args:
        text: A date and time, of this machine's time zone unless it has one; or `+` and a time after the submission, in
            the model's seconds, such as `+12h` or `+1d6h`.
        submit_s: The submission, a Unix time [s].
        speed: Seconds of the model in a second of the cluster.
    """
    allowed = "a time such as 2026-11-27T08:00, or after the submission such as +12h or +1d6h"
    if text.startswith("+"):
        parts = _SPAN.findall(text[1:])
        if not parts or "".join(number + unit for number, unit in parts) != text[1:]:
            raise InputError(where, text, allowed)
        due_s = submit_s + sum(float(number) * _UNITS[unit] for number, unit in parts) / speed
    else:
        try:
            due_s = datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            raise InputError(where, text, allowed) from None
    if not 0.0 <= due_s <= LATEST_S:
        raise InputError(where, text[:80], f"{allowed}, in the years 1970 to 8940")
    return due_s
