# pyright: basic
# Numba ships no types; this is the one file that touches it, so that all others are checked strictly.
"""`kernel`, the project's only spelling of ``numba.njit``, and the machine words that kernels need.

Numba's on-disk cache looks at the file of the compiled function alone: after an edit in *another*
file a cached caller keeps the old behaviour. Here the cache of each kernel is stamped with a hash
of all kernel sources of the package, so an edited rule is never played by its old code.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import caching
from numba.core.caching import Cache, CompileResultCacheImpl, NullCache
from numba.extending import intrinsic
from numpy.typing import NDArray

# NumPy's functions that make arrays.
_MAKERS = {
    "arange",
    "array",
    "copy",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
}

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent


def kernel_sources(package: Path = PACKAGE) -> list[Path]:
    """The package's files that define kernels, and every file of it that these import.

    Constants are frozen into compiled code, so an imported file counts although it has no kernel.
    """
    texts = {path.stem: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    todo = ["_jit", *(stem for stem, text in texts.items() if re.search(r"^@kernel", text, re.M))]
    found: set[str] = set()
    while todo:
        stem = todo.pop()
        if stem in texts and stem not in found:
            found.add(stem)
            todo += re.findall(r"^from rusol_env\.(\w+) import", texts[stem], re.M)
    return sorted(package / f"{stem}.py" for stem in found)


@functools.cache
def sources_hash(package: Path = PACKAGE) -> str:
    """SHA-256 (hexadecimal) over the names and contents of `kernel_sources`."""
    digest = hashlib.sha256()
    for path in kernel_sources(package):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def _say_compiling(cached: bool) -> None:
    """One line on stderr, once a process, before the first compilation (never on a start from the cache)."""
    when = "once (later starts load them from Numba's cache)"
    if not cached:
        when = "at every start, since no folder here can hold Numba's cache (NUMBA_CACHE_DIR names one)"
    print(f"rusol_env: compiling its kernels: ten seconds to half a minute, {when}", file=sys.stderr, flush=True)


def _stamped(locator: type) -> type:
    """A Numba cache locator whose freshness stamp also covers every kernel source of the package."""

    def get_source_stamp(self: Any) -> tuple[str, Any]:
        inherited: Any = super(stamped, self)
        return sources_hash(), inherited.get_source_stamp()

    stamped = type(f"Stamped{locator.__name__}", (locator,), {"get_source_stamp": get_source_stamp})
    return stamped


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[type]] = [
        _stamped(caching.UserProvidedCacheLocator),
        _stamped(caching.InTreeCacheLocator),
        _stamped(caching.UserWideCacheLocator),
        _stamped(caching.IPythonCacheLocator),
    ]


class _KernelCache(Cache):
    _impl_class = _KernelCacheImpl  # type: ignore[assignment]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged file makes pickle raise: it is only a cache, so make it anew
            self.flush()
            loaded = None
        if loaded is None:
            _say_compiling(True)
        return loaded


class _NoCache(NullCache):
    """Where nothing is writable: compile anew in every process."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _say_compiling(False)


def kernel(function: F) -> F:
    """Compile `function` with Numba on its first call: no Python objects, no lock held, cached on disk."""
    # Inlined into the kernels that call it: arrays travel as seven words each, which costs a seventh of the speed.
    # A kernel that makes no arrays counts no references: for each `rows[i]` that takes two locked instructions, in
    # all two thirds of the time of a step. (Numba's name for it has an underscore; its own libraries use it.)
    counted = not _MAKERS.isdisjoint(function.__code__.co_names)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": counted}
    compiled: Any = numba.njit(**options)(function)
    if not hasattr(compiled, "_cache"):
        raise ImportError("NUMBA_DISABLE_JIT is set, and rusol_env's kernels run compiled only: unset it")
    try:
        compiled._cache = _KernelCache(function)
    except RuntimeError:
        compiled._cache = _NoCache()
    return compiled


@kernel
def copy_array(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy a one-dimensional array; in a kernel ``target[:] = source`` would ask for memory of its own."""
    for i in range(source.shape[0]):
        target[i] = source[i]


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    byte = builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [at])
    return builder.bitcast(byte, ir.IntType(bits).as_pointer())


# Why intrinsics: in a kernel, `row.view(np.int64)[k]` costs 25 ns a time here, these cost under 1 ns.
if TYPE_CHECKING:

    def int64(value: Any) -> int:
        """A 64-bit integer: what a kernel makes of a smaller one before it computes with it."""
        ...

    def load64(row: NDArray[Any], at: int) -> int:
        """The int64 at byte `at` of a contiguous array; not checked against its bounds."""
        ...

    def store64(row: NDArray[Any], at: int, value: int) -> None:
        """Write the int64 `value` at byte `at` of a contiguous array; not checked against its bounds."""
        ...

    def lowest_bit(word: int) -> int:
        """The index of the lowest set bit of an int64 that is not 0."""
        ...

    def count_bits(word: Any) -> int:
        """How many bits of an int64 are set."""
        ...

    def places_of(value: Any, list32: NDArray[np.int16]) -> int:
        """The set of the places, bits 0 to 31, at which a contiguous array of at least 32 entries holds `value`."""
        ...

else:
    int64 = np.int64

    @intrinsic
    def load64(typingctx, row, at):

        def codegen(context, builder, signature, arguments):
            pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1], 64)
            return builder.load(pointer, align=1)

        return types.int64(row, types.int64), codegen

    @intrinsic
    def store64(typingctx, row, at, value):

        def codegen(context, builder, signature, arguments):
            pointer = _byte_pointer(context, builder, signature.args[0], arguments[0], arguments[1], 64)
            builder.store(arguments[2], pointer, align=1)
            return context.get_dummy_value()

        return types.void(row, types.int64, types.int64), codegen

    @intrinsic
    def lowest_bit(typingctx, word):

        def codegen(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), codegen

    @intrinsic
    def count_bits(typingctx, word):

        def codegen(context, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.int64(types.int64), codegen

    @intrinsic
    def places_of(typingctx, value, list32):

        def codegen(context, builder, signature, arguments):
            lanes = ir.VectorType(ir.IntType(16), 32)
            data = context.make_array(signature.args[1])(context, builder, arguments[1]).data
            held = builder.load(builder.bitcast(data, lanes.as_pointer()), align=2)
            one = builder.insert_element(
                ir.Constant(lanes, ir.Undefined), builder.trunc(arguments[0], ir.IntType(16)), ir.IntType(32)(0)
            )
            same = ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32)
            every = builder.shuffle_vector(one, ir.Constant(lanes, ir.Undefined), same)
            found = builder.bitcast(builder.icmp_signed("==", held, every), ir.IntType(32))
            return builder.zext(found, ir.IntType(64))

        return types.int64(types.int64, list32), codegen
