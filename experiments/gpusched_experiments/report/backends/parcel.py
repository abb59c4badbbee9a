"""Calls as bytes, with what many of them share beside them, so that it is sent once."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.model import Instance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Packing:
    """Packs calls one after the other; instances and `common` things are packed once each.

    Args:
        common: Further things that many calls hold.
        put: Takes the bytes of a shared thing, and gives what to send in its place.
    """

    def __init__(self, common: Iterable[object], put: Callable[[bytes], Any]) -> None:
        self._put, self._common = put, {id(thing): thing for thing in common}
        self._shared: dict[int, tuple[object, Any]] = {}

    def packed(self, call: Callable[[], object]) -> tuple[bytes, list[Any]]:
        """Give the bytes of a call, and what it shares with others.

        Raises:
            InputError: The call cannot be sent to other processes.
        """
        with io.BytesIO() as file:
            pickler = _Pickler(file, self)
            try:
                pickler.dump(call)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise InputError("backend", "ray", f"processes, since a run cannot be sent ({error})") from error
            return file.getvalue(), [self._shared[key][1] for key in pickler.used]

    def shares(self, thing: object) -> bool:
        """Say whether a thing is sent once for all calls."""
        return isinstance(thing, Instance) or id(thing) in self._common

    def keep(self, thing: object) -> int:
        """Put a shared thing, if it is new; give its key."""
        key = id(thing)
        if key not in self._shared:  # the thing is held too, so that no other gets its id
            self._shared[key] = (thing, self._put(pickle.dumps(thing)))
        return key


class _Pickler(pickle.Pickler):
    """Leaves out what is shared, and lists it."""

    def __init__(self, file: io.BytesIO, packing: Packing) -> None:
        super().__init__(file)
        self._packing, self.used = packing, list[int]()

    def persistent_id(self, thing: object) -> int | None:
        """Give the place of a shared thing among those of this call; None for any other."""
        if not self._packing.shares(thing):
            return None
        key = self._packing.keep(thing)
        if key not in self.used:
            self.used.append(key)
        return self.used.index(key)


def unpacked(parcel: bytes, shared: Sequence[bytes]) -> Callable[[], Any]:
    """Give the call again."""
    with io.BytesIO(parcel) as file:
        return _Unpickler(file, shared).load()


class _Unpickler(pickle.Unpickler):
    """Puts in again what is shared."""

    def __init__(self, file: io.BytesIO, shared: Sequence[bytes]) -> None:
        super().__init__(file)
        self._things = [pickle.loads(each) for each in shared]  # noqa: S301 - the command's own

    def persistent_load(self, place: int) -> object:
        """Give the shared thing of this place."""
        return self._things[place]
