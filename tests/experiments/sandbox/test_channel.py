"""Messages arrive whole, and what is none ends in an error: nothing is believed of the other side."""

import os
import struct
import threading
import time

import pytest

from gpusched_experiments.sandbox.serving import Channel, ClosedError, NoMessageError, TooLateError


@pytest.fixture
def ends():
    """Two channels that are one another's other side."""
    one_in, other_out = os.pipe()
    other_in, one_out = os.pipe()
    one, other = Channel(one_in, one_out), Channel(other_in, other_out)
    open_ends = [one, other]
    yield one, other, open_ends
    for each in open_ends:
        each.close()


def soon():
    return time.monotonic() + 5.0


def test_a_large_message_arrives_as_it_was_sent(ends):
    one, other, _ = ends
    body = os.urandom(3 * 2**20)
    sender = threading.Thread(target=one.send, args=({"a": [1, "ä"]}, [body[:7], body[7:]]))
    sender.start()
    assert other.receive(2**22, until=soon()) == ({"a": [1, "ä"]}, body)
    sender.join()


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (b"garbage, garbage, garbage", "more than belong there"),
        (struct.pack("<QQ", 5, 0) + b"hello", "no JSON"),
        (struct.pack("<QQ", 2, 0) + b"[]", "no JSON object"),
        (struct.pack("<QQ", 2, 9) + b"{}", "more than belong there"),
        (struct.pack("<QQ", 40_000, 0) + b"[" * 40_000, "no JSON"),
    ],
)
def test_garbage_is_no_message(ends, garbage, words):
    one, other, _ = ends
    os.write(one.outgoing, garbage)
    with pytest.raises(NoMessageError, match=words):
        other.receive(8, until=soon())


def test_who_is_gone_and_who_is_late_are_told_apart(ends):
    one, other, open_ends = ends
    with pytest.raises(TooLateError):
        other.receive(0, until=time.monotonic() + 0.01)
    with pytest.raises(TooLateError):
        other.send({}, [bytes(2**20)], until=time.monotonic() + 0.01)
    one.close()
    open_ends.remove(one)
    with pytest.raises(ClosedError):
        other.receive(0, until=soon())
    with pytest.raises(ClosedError):
        other.send({}, until=soon())
