"""How the kernels are compiled, and the words of their signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.core import types
from numba.extending import intrinsic

Integers = npt.NDArray[np.integer[Any]]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(signature: str) -> Callable[[Kernel], Kernel]:
    """Compile a kernel for that one signature when its module is imported, or have it from cache.

    What a kernel calls has to stand above it. No `parallel`: Spark's tasks are the parallelism,
    and a kernel that does not hold the GIL leaves threads their turn. Where numba finds nowhere
    to write (NUMBA_CACHE_DIR, beside the code, the user's cache), each process compiles anew.
    """

    def compile_one(function: Kernel) -> Kernel:
        try:
            return cast(Kernel, njit(signature, cache=True, **_OPTIONS)(function))
        except (OSError, RuntimeError):
            return cast(Kernel, njit(signature, **_OPTIONS)(function))

    return compile_one


def _population(typing_context: Any, word: Any) -> Any:
    """Typing and code of `population`: one instruction, that LLVM makes wider in loops."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


population = cast(Callable[[np.uint64], int], intrinsic(_population))
"""How many bits of a 64-bit word are set; numba knows no `np.bitwise_count`."""
