"""Logs on the standard error: one line an event, as text or as JSON, for people and for programs that collect them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from gpusched_env.errors import InputError

LogFormat: TypeAlias = Literal["text", "json"]
LEVELS = ("debug", "info", "warning", "error")
LOGGER = "gpusched"
_OTHERS = ("uvicorn",)  # their warnings come in the same form
_FIELDS = "fields"
TAKEN = ("level", "event", "time")
"""Names of fields that every line has."""


def log_event(name: str, /, level: int = logging.INFO, **fields: Any) -> None:
    logger = logging.getLogger(LOGGER)
    if logger.isEnabledFor(level):
        logger.log(level, name, extra={_FIELDS: {key: value for key, value in fields.items() if value is not None}})


@contextmanager
def logging_to_stderr(level: str = "warning", form: str = "text") -> Iterator[None]:
    """Write what is logged in the body to stderr, from a level of `LEVELS` on, as `text` or as lines of `json`."""
    if level not in LEVELS:
        raise InputError("--log-level", level, f"one of {', '.join(LEVELS)}")
    if form not in get_args(LogFormat):
        raise InputError("--log-format", form, f"one of {', '.join(get_args(LogFormat))}")
    handler = logging.StreamHandler()
    handler.addFilter(_is_told)
    handler.setFormatter(_AsJson() if form == "json" else _AsText())
    before = [(logger, logger.level, logger.propagate) for logger in map(logging.getLogger, (LOGGER, *_OTHERS))]
    for logger, _, _ in before:
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(level.upper() if logger.name == LOGGER else max(logging.WARNING, _number_of(level)))
    try:
        yield
    finally:
        for logger, former, propagate in before:
            logger.removeHandler(handler)
            logger.setLevel(former)
            logger.propagate = propagate


class _AsJson(logging.Formatter):
    """An object with `time`, `level` and `event`, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_told(record), default=str)


class _AsText(logging.Formatter):
    """The time, the level and the event, and `name=value` for the fields."""

    def format(self, record: logging.LogRecord) -> str:
        told = _told(record)
        head = f"{told.pop('time')} {told.pop('level').upper()} {told.pop('event')}"
        return " ".join([head, *(f"{name}={_plain(value)}" for name, value in told.items())])


def _is_told(record: logging.LogRecord) -> bool:
    """Return whether it is told: not that a request was given up because the service ends."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _number_of(level: str) -> int:
    return int(getattr(logging, level.upper()))


def _told(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a line tells; a message of a library stands as the field `message`."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = {"time": time, "level": record.levelname.lower()}
    fields = getattr(record, _FIELDS, None)
    if fields is not None:
        return head | {"event": record.getMessage()} | fields
    told = head | {"event": "message", "logger": record.name, "message": record.getMessage()}
    if record.exc_info and record.exc_info[1] is not None:
        told["exception"] = logging.Formatter().formatException(record.exc_info)
    return told


def _plain(value: Any) -> str:
    """Return a value as one word, or in quotes; without line ends, so that nobody can write a line of their own."""
    text = str(value)
    plain = text and text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)
