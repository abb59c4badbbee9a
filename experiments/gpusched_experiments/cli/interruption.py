"""A command that is stopped, by Ctrl-C or by SIGTERM, says so in one line, whatever it is at, and leaves nobody behind.

The first signal raises KeyboardInterrupt wherever the command is, so that it clears up; Python, Numba and LLVM make of
that what they will (other errors, a text on stderr, nothing at all), hence what comes after is not taken at its word. A
second signal, or five seconds, end the command at once.

This module imports nothing that takes time, since it is there before all else is imported.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

INTERRUPTED, TERMINATED = 130, 143
GRACE_S = 5.0
"""How long a command that was stopped may clear up."""
SAYING_S = 2.0
"""How long a thread that ends the command waits for another one that is about to say so."""
ONE_S = 0.3
"""Signals that come closer together than this are one."""
_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"


class _Stop(KeyboardInterrupt):
    """Ctrl-C by another name: where Python sees its own pass, it kills the process in the end, with another code."""


@dataclass(slots=True)
class _Heard:
    """What this process has heard and said."""

    signal: int | None = None
    at_s: float = 0.0
    said: bool = False
    ending: bool = False


_heard = _Heard()
_saying = threading.RLock()  # held while the line is written
_leaving = threading.RLock()  # taken for good by the first thread that ends the process


def listen() -> None:
    """Handle Ctrl-C and SIGTERM from now on, for the rest of this process."""
    if threading.current_thread() is not threading.main_thread():
        return
    # Its helper would speak of semaphores that it has cleared away, on the terminal, after a command that had to go.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    for number in _WORDS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as in the background of a shell
            signal.signal(number, _hear)
    if os.name == "posix":
        receiver, sender = os.pipe()
        os.set_blocking(sender, False)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(receiver,), name="interruption", daemon=True).start()


def stopped() -> bool:
    return _heard.signal is not None


def exit_code() -> int:
    return TERMINATED if _heard.signal == signal.SIGTERM else INTERRUPTED


def say(kept: str = "") -> None:
    """Print, once in a process that listens, that the command was stopped, and what is kept."""
    with _saying:
        if not (_heard.said and stopped()):
            _heard.said = True
            word = _WORDS.get(signal.Signals(_heard.signal or signal.SIGINT), "stopped")
            sys.stderr.write(f"error: {word}{f'; {kept}' if kept else ''}\n")
            sys.stderr.flush()


def end(code: object) -> None:
    """Take note that the command has ended with this code; if it was stopped, say so and exit.

    From here on a signal ends the process at once: there is nothing left to clear up.
    """
    _heard.ending = True
    if stopped():
        if code not in (INTERRUPTED, TERMINATED):  # else it has said so itself
            say()
        _heard.said = True
        sys.exit(exit_code())


def _hear(number: int, _frame: FrameType | None) -> None:
    if _heard.ending or _is_second():
        _leave(number)
    if stopped():
        return
    _heard.signal, _heard.at_s = number, time.monotonic()
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    raise _Stop


def _is_second() -> bool:
    """Return whether a signal is the second one, and not the first once more, as from a program that hands it on."""
    return stopped() and time.monotonic() - _heard.at_s > ONE_S


def _watch(receiver: int) -> None:
    """End the process when it takes too long to clear up, or when it cannot hear, being in compiled code."""
    while True:
        number = os.read(receiver, 1)[0]
        # Another handler than ours, such as a server's own, is left to do what it does.
        if number not in _WORDS or signal.getsignal(number) is not _hear:
            continue
        end_s = time.monotonic() + GRACE_S
        while (left_s := end_s - time.monotonic()) > 0.0:
            ready, _, _ = select.select([receiver], [], [], left_s)
            if ready and os.read(receiver, 1)[0] in _WORDS and _is_second():
                break
        _leave(number)


def _leave(number: int) -> NoReturn:
    """End this process and those that it started, at once."""
    # The watcher and the handler hear the same second signal. A third one, within the first thread, does all of it.
    if not _leaving.acquire(blocking=False):
        time.sleep(1.0)  # the other thread ends the process
        os._exit(exit_code())
    _heard.signal = _heard.signal or number
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children  # noqa: PLC0415 - it is imported by now, or not needed

        for child in active_children():
            child.kill()
    try:
        if sys.stderr.isatty():
            os.write(2, _SHOW_CURSOR)
        # Kept for good: else the other thread would say it once more before the process is gone.
        if _saying.acquire(timeout=SAYING_S) and not _heard.said:
            os.write(2, f"error: {_WORDS[signal.Signals(_heard.signal or signal.SIGINT)]}\n".encode())
            _heard.said = True
    finally:
        os._exit(exit_code())
