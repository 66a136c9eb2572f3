"""Compiles and caches functions on arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit
from numba.core import types
from numba.core.caching import _CacheLocator
from numba.extending import intrinsic

from vizpub.machine.jvm.artifacts import cache_path

IS_PLAIN = bool(vars(config)["DISABLE_JIT"])
"""True if nothing is compiled (NUMBA_DISABLE_JIT=1): the same functions run as plain Python."""

_PACKED = re.compile(r".*/(vizpub-[0-9a-f]+)\.zip/(.+)")

_Operation = TypeVar("_Operation", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(*signature: Any, owns: bool = True) -> Callable[[_Operation], _Operation]:
    """Compile a function for these argument types (or a signature as text) when its module is
    imported, or load it from the cache.

    With `owns=False` its code does not count references to arrays, on which functions that pass
    dozens of arrays to one another can spend nine tenths of their time. Such a function creates and
    returns no arrays; compiled functions that it calls may create some.

    Functions that it calls must be defined above it, and it must give the same results as plain
    Python: no integer may overflow. `parallel` is not used: tasks and processes run in parallel.
    The GIL is released, so other threads run meanwhile. If numba can write to none of its cache
    folders (NUMBA_CACHE_DIR, beside the code, the user's cache), each process compiles again.
    """
    argument_types = signature[0] if isinstance(signature[0], str) else signature
    options = {**_OPTIONS, "_nrt": owns}

    def compile_one(function: _Operation) -> _Operation:
        try:
            return cast(_Operation, njit(argument_types, cache=True, **options)(function))
        except Exception:  # there is no folder for the cache, or a power cut left half a file in it
            return cast(_Operation, njit(argument_types, **options)(function))

    return compile_one


class PackedLocator(_CacheLocator):
    """Numba's cache for functions from vizpub's zip file, which executors get
    (vizpub.ingest.spark.shipping): a folder in the user's cache, named like the zip file, whose
    name has a digest of its content.

    Every session has that file in another directory. numba's own locators use the path, and would
    compile everything again in each session. NUMBA_CACHE_LOCATOR_CLASSES names this one. A worker
    needs 0.9 s of processor time to import the kernels with it and 9.5 s without it.
    """

    def __init__(self, function: Callable[..., Any], content: str, module: str) -> None:
        self._content = content
        self._line = function.__code__.co_firstlineno
        self._folder = cache_path() / "numba" / content / Path(module).parent

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> PackedLocator | None:
        """Return null for a function of another origin, or if the cache cannot be written."""
        match = _PACKED.fullmatch(py_file.replace(os.sep, "/"))
        if match is None:
            return None
        locator = cls(py_func, *match.groups())
        try:
            locator.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None
        return locator

    def get_cache_path(self) -> str:
        """Return the cache folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return a constant: the content of the zip file never changes."""
        return self._content

    def get_disambiguator(self) -> str:
        """Distinguish functions of the same name in a module."""
        return str(self._line)


def _population(typing_context: Any, word: Any) -> Any:
    """Return types and code of `population`: one instruction, which LLVM vectorises in loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _plain_population(word: np.uint64) -> int:
    return int(word).bit_count()


population: Callable[[np.uint64], int] = (
    _plain_population if IS_PLAIN else cast(Any, intrinsic(_population))
)
"""Count the bits that are set in a 64-bit word; numba lacks `np.bitwise_count`."""
