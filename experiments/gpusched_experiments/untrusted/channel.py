"""Messages over two pipes: a head of JSON, and bytes. Nothing that is read is unpickled or run."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_HEAD = 2**16
PIECE = 2**20
SIZES = struct.Struct("<QQ")
MILLISECONDS = 1000.0


class ClosedError(Exception):
    """The other side is gone."""


class TooLateError(Exception):
    """The other side took too long."""


class NoMessageError(Exception):
    """What came is no message of the kind that was awaited; says why."""


class Channel:
    """Sends and receives messages.

    Args:
        incoming: File descriptor to read from.
        outgoing: File descriptor to write to.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)

    def send(self, head: dict[str, Any], body: Iterable[bytes] = (), *, until: float | None = None) -> None:
        """Send a message.

        Args:
            head: What JSON can hold.
            body: Pieces of the bytes behind it.
            until: When to give up, by `time.monotonic` [s]; None for never.

        Raises:
            ClosedError: Nobody reads.
            TooLateError: It was not read in time.
        """
        text = json.dumps(head).encode()
        behind = b"".join(body)
        data = memoryview(SIZES.pack(len(text), len(behind)) + text + behind)
        while data:
            _wait(self.outgoing, select.POLLOUT, until)
            try:
                data = data[os.write(self.outgoing, data[:PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError from error

    def receive(self, most: int, *, most_head: int = MOST_HEAD, until: float | None = None) -> tuple[Any, bytes]:
        """Receive a message: its head, which is a dictionary, and the bytes behind it.

        Args:
            most: Most bytes behind the head.
            most_head: Most bytes of the head.
            until: When to give up, by `time.monotonic` [s]; None for never.

        Raises:
            ClosedError: The other side is gone.
            TooLateError: It took too long.
            NoMessageError: It is no such message, or larger.
        """
        of_head, of_body = SIZES.unpack(self._read(SIZES.size, until))
        if of_head > most_head or of_body > most:
            raise NoMessageError(f"{of_head:,} and {of_body:,} bytes, more than belong there")
        try:
            head = json.loads(self._read(of_head, until))
        except (ValueError, RecursionError) as error:
            raise NoMessageError("no JSON") from error
        if not isinstance(head, dict):
            raise NoMessageError("no JSON object")
        return head, self._read(of_body, until)

    def close(self) -> None:
        """Close both pipes."""
        os.close(self.incoming)
        os.close(self.outgoing)

    def _read(self, count: int, until: float | None) -> bytes:
        parts, left = [], count
        while left:
            _wait(self.incoming, select.POLLIN, until)
            try:
                part = os.read(self.incoming, min(left, PIECE))
            except BlockingIOError:
                continue
            except OSError as error:
                raise ClosedError from error
            if not part:
                raise ClosedError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def _wait(descriptor: int, event: int, until: float | None) -> None:
    """Wait until it can be read from, or written to; an end of the other side is found there."""
    poll = select.poll()
    poll.register(descriptor, event)
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0.0:
        raise TooLateError
    if not poll.poll(None if left is None else left * MILLISECONDS):
        raise TooLateError
