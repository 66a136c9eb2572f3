"""Rows of words, eight words at a time: numba makes no vector instructions of so short a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from analytics.kernels.adjacency import Peers
from model.compiled import IS_PLAIN, Words, population

_code: Any = cgutils
BLOCK = 8
"""Words that are joined at once; the length of a row is a multiple of it."""

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, BLOCK)


def _bits_of(builder: Any, vector: Any) -> Any:
    """How many bits of the vector are set."""

    def call(name: str, result: Any, argument: Any) -> Any:
        kind = ir.FunctionType(result, [_VECTOR])
        return builder.call(_code.get_or_insert_function(builder.module, kind, name), [argument])

    each = call(f"llvm.ctpop.v{BLOCK}i64", _VECTOR, vector)
    return call(f"llvm.vector.reduce.add.v{BLOCK}i64", _WORD, each)


def _join(typing_context: Any, rows: Any, idx: Any, base: Any, out: Any, where: Any) -> Any:
    """Typing and code of `join`: the block stays in a register while the rows pass by."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, which, start, target = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args[:4], arguments[:4], strict=True)
        )
        begin, end, v, block = (builder.extract_value(arguments[4], i) for i in range(4))
        width = builder.extract_value(source.shape, 1)

        def place(array: Any, row: Any) -> Any:
            word = builder.add(builder.mul(row, width), block)
            return builder.bitcast(builder.gep(array.data, [word]), _VECTOR.as_pointer())

        joined = _code.alloca_once_value(builder, builder.load(place(start, v), align=8))
        with _code.for_range_slice(builder, begin, end, _WORD(1), _WORD) as (k, _):
            row = builder.zext(builder.load(builder.gep(which.data, [k])), _WORD)
            more = builder.load(place(source, row), align=8)
            builder.store(builder.or_(builder.load(joined), more), joined)
        builder.store(builder.load(joined), place(target, v), align=8)
        return _bits_of(builder, builder.load(joined))

    return types.int64(rows, idx, base, out, where), generate


def _plain_join(
    rows: Words, idx: Peers, base: Words, out: Words, where: tuple[int, int, int, int]
) -> int:
    begin, end, v, block = where
    words = slice(block, block + BLOCK)
    joined = base[v, words].copy()
    for peer in idx[begin:end]:
        joined |= rows[peer, words]
    out[v, words] = joined
    return sum(population(word) for word in joined)


join: Callable[[Words, Peers, Words, Words, tuple[int, int, int, int]], int] = (
    _plain_join if IS_PLAIN else cast(Any, intrinsic(_join))
)
"""`join(rows, idx, base, out, (begin, end, v, block))`: set the eight words of row v of `out` from
word `block` on to those of `base` joined with those of all rows `idx[begin:end]`; how many bits
they have then. The arrays are uint64[n, width] of one width, the numbers int64."""
