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
"""Nothing is compiled (NUMBA_DISABLE_JIT=1): the same functions run as the Python they are."""

_PACKED = re.compile(r".*/(vizpub-[0-9a-f]+)\.zip/(.+)")

_Operation = TypeVar("_Operation", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(*signature: Any, owns: bool = True) -> Callable[[_Operation], _Operation]:
    """Compile a function for these argument types (or a signature as text) when its module is
    imported, or load it from the cache.

    With `owns=False` its code does not count references to arrays. Functions that pass dozens of
    arrays to one another can spend nine tenths of their time on that. Such a function makes and
    returns no arrays; functions that it calls by `compiled` may make some.

    Functions that it calls must be defined above it, and it must give the same results as
    plain Python: no integer may overflow. No `parallel`: tasks and processes are the parallelism.
    The GIL is released, so other threads run meanwhile. Where numba finds nowhere to write
    (NUMBA_CACHE_DIR, beside the code, the user's cache), each process compiles again.
    """
    types_given = signature[0] if isinstance(signature[0], str) else signature
    options = {**_OPTIONS, "_nrt": owns}

    def compile_one(function: _Operation) -> _Operation:
        try:
            return cast(_Operation, njit(types_given, cache=True, **options)(function))
        except (OSError, RuntimeError):
            return cast(_Operation, njit(types_given, **options)(function))

    return compile_one


class PackedLocator(_CacheLocator):
    """Numba's cache for functions from our packages in one zip file, as executors get them
    (vizpub.ingest.spark.shipping): in the user's cache, by the name of the file, which has
    a digest of its content.

    Every session has that file in another directory. numba's own locators use the path, and so
    would compile everything again in each session. NUMBA_CACHE_LOCATOR_CLASSES names this one. A
    worker takes 0.9 s of processor time to import the kernels with it and 9.5 s without.
    """

    def __init__(self, function: Callable[..., Any], content: str, module: str) -> None:
        self._content = content
        self._line = function.__code__.co_firstlineno
        self._folder = cache_path() / "numba" / content / Path(module).parent

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> PackedLocator | None:
        """Null for a function of another origin, or where nothing can be written."""
        found = _PACKED.fullmatch(py_file.replace(os.sep, "/"))
        if found is None:
            return None
        locator = cls(py_func, *found.groups())
        try:
            locator.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None
        return locator

    def get_cache_path(self) -> str:
        """The cache folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Constant: the content of the zip file never changes."""
        return self._content

    def get_disambiguator(self) -> str:
        """Distinguishes functions of the same name in a module."""
        return str(self._line)


def _population(typing_context: Any, word: Any) -> Any:
    """Typing and code of `population`: one instruction, that LLVM makes wider in loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _plain_population(word: np.uint64) -> int:
    return int(word).bit_count()


population: Callable[[np.uint64], int] = (
    _plain_population if IS_PLAIN else cast(Any, intrinsic(_population))
)
"""How many bits of a 64-bit word are set; numba knows no `np.bitwise_count`."""
