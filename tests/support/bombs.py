"""Cypher that is large in one way: texts that a parser must not get, and texts that it must
survive."""

from __future__ import annotations

from collections.abc import Callable

SHAPES: dict[str, tuple[Callable[[int], str], int]] = {
    "round": (lambda n: f"RETURN {'(' * n}1{')' * n} AS x", 50),
    "lists": (lambda n: f"RETURN {'[' * n}1{']' * n} AS x", 50),
    "maps": (lambda n: f"RETURN {'{a: ' * n}1{'}' * n} AS x", 10),
    "calls": (lambda n: f"RETURN {'toString(' * n}1{')' * n} AS x", 50),
    "cases": (lambda n: f"RETURN {'CASE WHEN true THEN ' * n}1{' END' * n} AS x", 50),
    "subqueries": (lambda n: f"RETURN {'COUNT { RETURN ' * n}1 AS y{'} AS y' * n}", 10),
    "sum": (lambda n: f"RETURN {'+'.join(['1'] * (n + 1))} AS x", 100),
    "texts": (lambda n: "RETURN " + "+".join(["'a'"] * (n + 1)) + " AS x", 100),
    "power": (lambda n: f"RETURN {'^'.join(['1'] * (n + 1))} AS x", 100),
    "nots": (lambda n: f"RETURN {'NOT ' * n}true AS x", 100),
    "ors": (lambda n: f"RETURN {' OR '.join(['1 = 1'] * n)} AS x", 100),
    "properties": (lambda n: f"WITH null AS m RETURN m{'.a' * n} AS x", 100),
    "indexes": (lambda n: f"WITH null AS m RETURN m{'[0]' * n} AS x", 100),
    "left": (lambda n: f"RETURN {'(' * (n // 2)}1{' + 1)' * (n // 2)} AS x", 100),
    "list": (lambda n: f"RETURN size([{', '.join(['1'] * n)}]) AS x", 2_490),
    "sums": (lambda n: f"RETURN [{', '.join(['1 + 1 + 1 = 3'] * n)}] AS x", 600),
    "steps": (lambda n: "WITH 1 AS x " * n + "RETURN x", 199),
}  # fmt: skip
"""Texts of a size, and the largest size that is accepted."""
