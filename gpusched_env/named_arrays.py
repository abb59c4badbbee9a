"""Arrays with names that kernels take as one argument.

To a kernel such a value is one pointer, to a table with the address and the shape of every array in it. It costs as
much to pass as a number, however many arrays it has, and a kernel that needs two of them reads two.
"""
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any

from __future__ import annotations

import copyreg
from functools import lru_cache, reduce
from inspect import get_annotations
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

import numpy as np
from llvmlite import ir
from numba import from_dtype
from numba.core import cgutils, config, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, intrinsic, lower_getattr_generic, models, register_model, typeof_impl, unbox
from numba.np import arrayobj

from gpusched_env.hooks import digest_of, fields_of
from gpusched_env.known_flags import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.arrays import Ints

PLAIN = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
"""Whether kernels run as Python."""

WORD = ir.IntType(64)
T = TypeVar("T", bound="NamedArrays")
LINE = 8  # numbers in a line of the cache, on most processors

utils: Any = cgutils  # it has no types


class _Kind(type):
    """The class of the classes below, so that one that `build` made is pickled by what it was made of."""


def _reduced(kind: Any) -> Any:
    return (build, (kind._kind, kind.mechanisms)) if "_kind" in vars(kind) else kind.__qualname__  # noqa: SLF001


copyreg.pickle(_Kind, _reduced)


class NamedArrays(metaclass=_Kind):
    """Base of values that are arrays by name; kernels read them as attributes, as Python does.

    A subclass annotates its fields: `Annotated[NDArray[np.float64], 2]` is a matrix, and another subclass stands for
    one of its values. Fields never change; the values in their arrays do. Copied or unpickled, a value has arrays of
    its own.

    `build` makes a subclass with the fields that mechanisms add, also to the values in it. `has_x`, whether it has the
    mechanism `x`, is a constant to a kernel (`known_flags`).

    Raises:
        TypeError: A field is missing or unknown, or its array is not C-contiguous, cannot be written, or has another
            type or number of axes, or it is no value of the kind that it is annotated with.
    """

    together: ClassVar[tuple[str, ...]] = ()
    mechanisms: ClassVar[tuple[str, ...]] = ()
    _fields: ClassVar[dict[str, Any]] = {}
    _dtypes: ClassVar[dict[str, Any]] = {}
    _numba_type_: ClassVar[Any] = None
    _table_: Ints

    def __init_subclass__(cls) -> None:
        bases = [base for base in cls.__bases__ if issubclass(base, NamedArrays)]
        hints = {
            name: hint for name, hint in get_annotations(cls, eval_str=True).items() if "ClassVar" not in str(hint)
        }
        own = {name: _kind(hint) for name, hint in hints.items()}
        fields = reduce(or_, [base._fields for base in reversed(bases)], {}) | own
        cls._fields = {name: _in_build(kind, cls.mechanisms) for name, kind in fields.items()}
        packed = [*(name for base in reversed(bases) for name in base.together), *cls.__dict__.get("together", ())]
        cls.together = tuple(dict.fromkeys(packed))
        arrays = {name: kind for name, kind in cls._fields.items() if isinstance(kind, types.Array)}
        cls._dtypes = {name: np.dtype(str(kind.dtype)) for name, kind in arrays.items()}
        cls._numba_type_ = NamedArraysType(cls.__name__, cls._fields, cls.mechanisms)
        cls._numba_type_.own = cls.__dict__.get("_kind", cls)

    def __init__(self, **values: Any) -> None:
        self.__setstate__(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(PREFIX):
            return name.removeprefix(PREFIX) in self.mechanisms
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self).__dict__.get("_kind", type(self)), self.mechanisms, self.__getstate__())

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} stays the same array: change its values")

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def __setstate__(self, values: Mapping[str, Any]) -> None:
        if values.keys() != self._fields.keys():
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(self._fields)}, not {', '.join(values)}")
        self._point(values, np.empty(self._numba_type_.words, dtype=np.int64))

    def _point(self, values: Mapping[str, Any], table: Ints) -> None:
        words: list[int] = []
        for name, kind in self._fields.items():
            array = self._table_or_array(name, values[name])
            words += (array.__array_interface__["data"][0], *(array.shape if isinstance(kind, types.Array) else ()))
        table[:] = words
        self.__dict__.update(values, _table_=table)

    def _table_or_array(self, name: str, value: Any) -> Any:
        """Return the array to which the table points for a field: its own, or the table of a value."""
        kind, field = self._fields[name], f"{type(self).__name__}.{name}"
        if isinstance(kind, NamedArraysType):
            if not isinstance(value, NamedArrays) or value._numba_type_ != kind:
                raise TypeError(f"{field} must be of the kind {kind.name.partition('(')[0]}")
            return value._table_
        dtype = self._dtypes[name]
        right = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == kind.ndim
        if not right or not (value.flags.c_contiguous and value.flags.writeable):
            raise TypeError(
                f"{field} must be a C-contiguous array of {dtype} with {kind.ndim} axes that can be written"
            )
        return value

    def replaced(self, **arrays: Any) -> Self:
        """Return a value of the same build with other arrays in these fields; in the others they are the same."""
        return type(self)(**self.__getstate__() | arrays)

    @property
    def words(self) -> int:
        own = [getattr(self, name).size for name in self.together]
        return sum(_lines(size) for size in (len(self._table_), *own))

    def placed(self, memory: Ints) -> Self:
        """Return an equal value, with its table and copies of the arrays named in `together` in `memory`.

        Values that many runs read at every step are then close together, on pages as large as that of `memory`.

        Args:
            memory: At least `words` numbers.
        """
        values, table, end = self.__getstate__(), memory[: len(self._table_)], _lines(len(self._table_))
        table[:] = self._table_
        first = memory.__array_interface__["data"][0]
        for name in self.together:
            array = values[name]
            values[name] = memory[end : end + array.size].view(array.dtype).reshape(array.shape)
            values[name][...] = array
            table[self._numba_type_.places[name]] = first + 8 * end
            end += _lines(array.size)
        moved = object.__new__(type(self))
        moved.__dict__.update(values, _table_=table)
        return moved

    @property
    def handle(self) -> Any:
        """Return the handle by which `element_of` finds this value while it exists: the address of its table."""
        return self if PLAIN else self._table_.ctypes.data


@lru_cache(maxsize=256)
def build(kind: type[T], mechanisms: tuple[str, ...]) -> type[T]:
    """Make `kind` for runs with some mechanisms: with their fields, and kernels that call their functions."""
    added = [fields for name in mechanisms for fields in fields_of(name) if issubclass(fields, kind)]
    space = {"mechanisms": mechanisms, "_kind": kind, "__module__": kind.__module__}
    return type(kind.__name__, (*reversed(added), kind), space) if mechanisms else kind


def added_fields(value: NamedArrays | type[NamedArrays]) -> tuple[str, ...]:
    """Return the names of the fields that mechanisms add to a value, or to a build."""
    own = value if isinstance(value, type) else type(value)
    return tuple(name for name in own._fields if name not in own.__dict__.get("_kind", own)._fields)


def _restored(kind: type[NamedArrays], mechanisms: tuple[str, ...], values: Mapping[str, Any]) -> NamedArrays:
    made: NamedArrays = build(kind, mechanisms)(**values)
    return made


class NamedArraysType(types.Type):
    """Numba's type of a `NamedArrays`: its table has `words` numbers, and `places` are where those of fields begin.

    The mechanisms, and digests of them, are part of its name, so that kernels of two builds are two on the disk.
    `own` is the class of which it is a build.
    """

    own: Any

    def __init__(self, name: str, fields: Mapping[str, Any], mechanisms: tuple[str, ...]) -> None:
        self.fields, self.mechanisms = dict(fields), mechanisms
        self.places: dict[str, int] = {}
        words = 0
        for field, kind in fields.items():
            self.places[field] = words
            words += 1 + kind.ndim if isinstance(kind, types.Array) else 1
        self.words = words
        parts = [f"{field}: {kind}" for field, kind in fields.items()]
        parts += [f"{mechanism} {digest_of(mechanism)}" for mechanism in mechanisms]
        super().__init__(name=f"{name}({', '.join(parts)})")


def new_handles(size: int) -> Any:
    """Make a sequence for the handles of values, as `element_of` takes it."""
    return [None] * size if PLAIN else np.zeros(size, dtype=np.int64)


def element_of(kind: type[NamedArrays]) -> Any:
    """Make the function that returns, in a kernel, the value of the handle `handles[i]`."""
    numba_type = kind._numba_type_

    def element(typing_context: Any, handles: Any, i: Any) -> Any:  # noqa: ARG001 - as Numba calls it
        return numba_type(handles, types.intp), _pointer_at(0)

    return (lambda handles, i: handles[i]) if PLAIN else intrinsic(element)


def _same_build(typing_context: Any, like: Any, handles: Any, i: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    return like(like, handles, types.intp), _pointer_at(1)


def _pointer_at(first: int) -> Any:
    """Make the code of a function whose arguments from `first` on are handles and an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = signature.args[first]
        place = context.make_array(of)(context, builder, arguments[first])
        pointer = utils.get_item_pointer(context, builder, of, place, arguments[first + 1 :], wraparound=False)
        return builder.inttoptr(builder.load(pointer), WORD.as_pointer())

    return generate


element_like: Any = (lambda _, handles, i: handles[i]) if PLAIN else intrinsic(_same_build)
"""Return, in a kernel, the value of the handle `handles[i]`, which is of the same build as the first argument."""


def aligned(rows: int, size: int) -> Ints:
    """Make memory for values to be `placed`, (rows, at least `size`): each row begins with a line of the cache.

    Rows have an odd number of lines, so that their first values do not compete for the same places in the cache.
    """
    width = LINE * (-(-size // LINE) | 1)
    memory = np.empty(rows * width + LINE, dtype=np.int64)
    return memory[-memory.ctypes.data // 8 % LINE :][: rows * width].reshape(rows, width)


def _lines(size: int) -> int:
    return -(-size // LINE) * LINE


def _in_build(kind: Any, mechanisms: tuple[str, ...]) -> Any:
    """Return the type of a field in a build: a value in a value is of the same build."""
    return build(kind.own, mechanisms)._numba_type_ if isinstance(kind, NamedArraysType) else kind


def _kind(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        array, axes = get_args(hint)
        alias = getattr(get_origin(array), "__value__", None)
        if alias is not None:  # since NumPy 2.5 `NDArray` is an alias that Python does not look through
            array = alias[get_args(array)]
        return types.Array(from_dtype(np.dtype(get_args(get_args(array)[1])[0])), axes, "C")
    return hint._numba_type_


@register_model(NamedArraysType)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORD.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = NamedArraysType

    def generic_resolve(self, kind: NamedArraysType, name: str) -> Any:  # type: ignore[override]
        return kind.fields.get(name)


@lower_getattr_generic(NamedArraysType)
def _field(context: Any, builder: Any, kind: NamedArraysType, value: Any, name: str) -> Any:
    """Read a field from the table. It never changes during a call, so the compiler need not read it twice."""
    wanted, first = kind.fields[name], kind.places[name]
    never_changes = builder.module.add_metadata([])

    def word(slot: int) -> Any:
        loaded = builder.load(builder.gep(value, [WORD(first + slot)]))
        loaded.set_metadata("invariant.load", never_changes)
        return loaded

    if isinstance(wanted, NamedArraysType):
        return builder.inttoptr(word(0), WORD.as_pointer())
    array = arrayobj.make_array(wanted)(context, builder)
    shape = [word(1 + axis) for axis in range(wanted.ndim)]
    strides = [WORD(wanted.dtype.bitwidth // 8)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(word(0), array.data.type)
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
    return array._getvalue()  # noqa: SLF001 - Numba's own way


@typeof_impl.register(NamedArrays)
def _type_of(value: NamedArrays, _: Any) -> Any:
    return value._numba_type_


@unbox(NamedArraysType)
def _unbox(_: Any, value: Any, c: Any) -> Any:
    table_type = types.Array(types.int64, 1, "C")
    table = c.pyapi.object_getattr_string(value, "_table_")
    unboxed = c.unbox(table_type, table)
    c.pyapi.decref(table)  # the value that the caller holds keeps it
    array = arrayobj.make_array(table_type)(c.context, c.builder, value=unboxed.value)
    if c.context.enable_nrt:  # unboxing counted a reference, which nothing else would release
        c.context.nrt.decref(c.builder, table_type, unboxed.value)
    return NativeValue(c.builder.bitcast(array.data, WORD.as_pointer()), is_error=unboxed.is_error)
