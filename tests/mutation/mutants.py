"""Small wrong changes of a module's functions, made one at a time in the running process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {
    **dict(zip(("greatest", "lag", "first", "max"), ("least", "lead", "last", "min"), strict=True)),
    **dict(zip(("least", "lead", "last", "min"), ("greatest", "lag", "first", "max"), strict=True)),
    **{"is_valid": "is_null", "is_null": "is_valid", "isNull": "isNotNull", "isNotNull": "isNull"},
    **{"unboundedPreceding": "currentRow", "eqNullSafe": "__eq__", "argsort": "zeros_like"},
}
WORDS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "AND": "OR", "OR": "AND"},
    **{"left_anti": "left_semi", "left_semi": "left_anti", "left": "inner", "full": "inner"},
}
"""What stands in SQL and for a kind of join."""
LEFT_OUT = {"where", "filter", "fill_null", "fillna", "cast"}
"""Calls that may be replaced by their receiver."""
NO_CODE = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True)
class Mutant:
    """A module's source with one change in one of its functions."""

    function: str
    """As in `Class.method`."""
    change: str
    code: Any

    def __str__(self) -> str:
        return f"{self.function}: {self.change}"


def mutants(module: ModuleType) -> Iterator[Mutant]:
    """All of them, in the order of the source. The same change in one function is numbered."""
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    seen: dict[str, int] = {}
    for name, function in _functions(tree):
        for parent, place, old, new in _changes(function):
            _put(parent, place, new)
            change = f"{_told(old)} → {_told(new)}"
            number = seen[f"{name} {change}"] = seen.get(f"{name} {change}", 0) + 1
            code = compile(ast.fix_missing_locations(tree), module.__file__, "exec")
            yield Mutant(name, change + f" ({number})" * (number > 1), code)
            _put(parent, place, old)


@contextmanager
def living(mutant: Mutant, module: ModuleType) -> Iterator[None]:
    """The function behaves as the mutant's for all its users."""
    space: dict[str, Any] = {"__name__": module.__name__}
    exec(mutant.code, space)
    ours, other = _find(vars(module), mutant.function), _find(space, mutant.function)
    kept = ours.__code__
    # One that names no `super()` any more needs its place for it all the same.
    ours.__code__ = other.__code__.replace(co_freevars=kept.co_freevars)
    try:
        yield
    finally:
        ours.__code__ = kept


def _find(space: dict[str, Any], name: str) -> FunctionType:
    owner, _, method = name.rpartition(".")
    found = vars(space[owner])[method] if owner else space[method]
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    assert isinstance(found, FunctionType), f"{name} is wrapped in something"
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{f.name}", f) for f in node.body if _is_function(f))


def _is_function(node: ast.stmt) -> Any:
    return isinstance(node, ast.FunctionDef)


Place = tuple[str, int | None]
Change = tuple[ast.AST, Place, ast.AST, ast.AST]


def _changes(parent: ast.AST) -> Iterator[Change]:
    """Depth first: (parent, field, the node there, its replacement)."""
    for field, value in ast.iter_fields(parent):
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if field in NO_CODE or not isinstance(child, ast.AST) or _is_said(child):
                continue
            for new in _variants(child):
                yield parent, (field, index), child, new
            yield from _changes(child)


def _is_said(node: ast.AST) -> bool:
    """Parts for readers and type checkers: assertions, docstrings, messages."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, ast.Assert | ast.JoinedStr)


def _put(parent: ast.AST, place: Place, node: ast.AST) -> None:
    field, index = place
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _told(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:55]} … {text[-30:]}"


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    for variants in (_of_operators, _of_values, _of_branches):
        yield from variants(node)


def _of_operators(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            yield ast.Compare(left, [SWAPPED[type(op)]()], right)
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            yield ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.UnaryOp(ast.Not() | ast.Invert() | ast.USub(), operand):
            yield operand


def _of_values(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(bool() | int() as value):
            yield ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.Constant(str() as value):
            yield from map(ast.Constant, _other_words(value))
        case ast.Attribute(value, name, ast.Load()) if name in NAMES:
            yield ast.Attribute(value, NAMES[name], ast.Load())
        case ast.Name("min" | "max" as name):
            yield ast.Name(NAMES[name], ast.Load())
        case ast.Call(ast.Attribute(value, name)) if name in LEFT_OUT and not _is_module(value):
            yield value


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "pc"


def _of_branches(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.IfExp(test, body, otherwise):
            yield ast.IfExp(test, otherwise, body)
        case ast.If(ast.Name() | ast.Call() as test, body, otherwise):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)
        case ast.AugAssign() | ast.Expr(ast.Call()) | ast.Break() | ast.Continue():
            yield ast.Pass()


def _other_words(text: str) -> Iterator[str]:
    """One word of it at a time is changed."""
    for found in re.finditer(r"\S+", text):
        if other := WORDS.get(found[0]):
            yield text[: found.start()] + other + text[found.end() :]
