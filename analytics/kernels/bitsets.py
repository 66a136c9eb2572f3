"""Rows of words, eight words at a time: numba does not vectorize such a short loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from analytics.kernels.adjacency import Peers
from model.arrays import Words
from model.compiled import IS_PLAIN, population

BLOCK = 8
"""Words joined at once; the length of a row is a multiple of it."""

_STRIPS = (4, 2, 1)
"""Blocks kept in registers while rows are joined."""

_code: Any = cgutils
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, BLOCK)


def _bits_of(builder: Any, vector: Any) -> Any:
    """Number of set bits of the vector."""

    def call(name: str, result: Any, argument: Any) -> Any:
        kind = ir.FunctionType(result, [_VECTOR])
        return builder.call(_code.get_or_insert_function(builder.module, kind, name), [argument])

    each = call(f"llvm.ctpop.v{BLOCK}i64", _VECTOR, vector)
    return call(f"llvm.vector.reduce.add.v{BLOCK}i64", _WORD, each)


def _join(typing_context: Any, rows: Any, idx: Any, base: Any, out: Any, where: Any) -> Any:
    """Typing and code of `join`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, which, start, target = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args[:4], arguments[:4], strict=True)
        )
        begin, end, v = (builder.extract_value(arguments[4], i) for i in range(3))
        width = builder.extract_value(source.shape, 1)
        bits = _code.alloca_once_value(builder, _WORD(0))

        def places(array: Any, row: Any, first: Any, blocks: int) -> list[Any]:
            word = builder.add(builder.mul(row, width), first)
            strip = builder.bitcast(builder.gep(array.data, [word]), _VECTOR.as_pointer())
            return [builder.gep(strip, [_WORD(block)]) for block in range(blocks)]

        def join_strip(first: Any, blocks: int) -> None:
            joined = [
                _code.alloca_once_value(builder, builder.load(place, align=8))
                for place in places(start, v, first, blocks)
            ]
            with _code.for_range_slice(builder, begin, end, _WORD(1), _WORD) as (k, _):
                row = builder.zext(builder.load(builder.gep(which.data, [k])), _WORD)
                for held, place in zip(joined, places(source, row, first, blocks), strict=True):
                    more = builder.load(place, align=8)
                    builder.store(builder.or_(builder.load(held), more), held)
            for held, place in zip(joined, places(target, v, first, blocks), strict=True):
                builder.store(builder.load(held), place, align=8)
                found = _bits_of(builder, builder.load(held))
                builder.store(builder.add(builder.load(bits), found), bits)

        done = _WORD(0)
        for blocks in _STRIPS:
            step = _WORD(BLOCK * blocks)
            last = builder.sub(width, builder.urem(builder.sub(width, done), step))
            with _code.for_range_slice(builder, done, last, step, _WORD) as (first, _):
                join_strip(first, blocks)
            done = last
        return builder.load(bits)

    return types.int64(rows, idx, base, out, where), generate


def _plain_join(
    rows: Words, idx: Peers, base: Words, out: Words, where: tuple[int, int, int]
) -> int:
    begin, end, v = where
    joined = base[v].copy()
    for peer in idx[begin:end]:
        joined |= rows[peer]
    out[v] = joined
    return sum(population(word) for word in joined)


join: Callable[[Words, Peers, Words, Words, tuple[int, int, int]], int] = (
    _plain_join if IS_PLAIN else cast(Any, intrinsic(_join))
)
"""`join(rows, idx, base, out, (begin, end, v))`: set row v of `out` to row v of `base` OR all rows
`idx[begin:end]`; returns its number of set bits. The arrays are uint64[n, width] of one width,
a multiple of `BLOCK`, the numbers int64."""
