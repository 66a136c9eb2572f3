"""Reports in columns are judged as the same reports are one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from vizpub.ingest.sources.reports.columns import (
    UnfitType,
    arrow_type,
    cast_to_grammar,
    reports_of,
    unfit_columns,
    unknown_columns,
)
from vizpub.reports.fields import REPORT, Key, KeyOr, Object, Whole

SEED = 7
NAMES = ["a", "99", "ü", "", "tab\t", "\x85", None]
NUMBERS = [0, 5, 2**31, 2**62, -1, None]
STRUCTURED = arrow_type(REPORT)
Row = dict[str, Any]


def random_row(rng: random.Random) -> Row:
    """A report that is often sound; nulls stand for what is absent, as Arrow has it."""

    def one(values: list[Any]) -> Any:
        return rng.choice(values[:3] if rng.random() < 0.9 else values)

    def several(make: Any) -> list[Any] | None:
        return rng.choice([None, [], [make() for _ in range(rng.randrange(4))]])

    def copy() -> Row:
        return {"message": one(NAMES), "hops": one([0, 1, 2, 2**31, None]), "bytes": one(NUMBERS)}

    return {
        "peer": one(NAMES),
        "interval": one([0, 1, 2, 2**31 - 1, -7, None]),
        "seq": one(NUMBERS),
        "neighbors": several(lambda: {"peer": one(NAMES), "layer": one([*NAMES[:3], None, ""])}),
        "topics": several(lambda: one(NAMES)),
        "roles": several(lambda: {"role": one(NAMES), "topic": one(NAMES)}),
        "attributes": several(lambda: {"key": one(NAMES), "value": one(NAMES)}),
        "control": rng.choice([None, {"sent": {"messages": one(NUMBERS)}, "received": None}]),
        "control_kinds": several(lambda: {"kind": one(NAMES), "ids_sent": one(NUMBERS)}),
        "received": several(lambda: {**copy(), "from": one(NAMES)}),
        "left": rng.choice([True, False, None]),
    }


@pytest.mark.parametrize("plain", [False, True])
def test_arrow_rows_are_judged_like_single_reports(plain: bool) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    rows = [random_row(rng) for _ in range(600)]
    if plain:
        for row in rows:
            row["neighbors"] = row["neighbors"] and [entry["peer"] for entry in row["neighbors"]]
    found, wrong = reports_of(pa.RecordBatch.from_pylist(rows))
    judged = {
        number: list(dict.fromkeys(REPORT.problems({"format": "vizpub.report/1", **row}, "")))
        for number, row in enumerate(rows)
    }
    assert wrong == {number: problems for number, problems in judged.items() if problems}
    assert 100 < len(wrong) < 500
    assert found.field("peer").to_pylist() == [row["peer"] for row in rows]
    assert found.field("interval").to_pylist() == [row["interval"] for row in rows]
    assert found.field("topics").to_pylist() == [row["topics"] for row in rows]


def test_arrow_types_are_shaped_to_the_report_types() -> None:
    lists = [["a", "b"], None, []]
    wanted = pa.array(lists, pa.list_(pa.string()))
    names = pa.list_(pa.dictionary(pa.int8(), pa.string()))
    for found in (pa.large_list(pa.large_string()), names):
        assert cast_to_grammar(pa.array(lists, found), REPORT.fields["topics"]).equals(wanted)
    pairs = pa.array([["a", "b"], None], pa.list_(pa.string(), 2))
    assert cast_to_grammar(pairs, REPORT.fields["topics"]).to_pylist() == [["a", "b"], None]
    sliced = pa.array([["x"], *lists, ["y"]]).slice(1, 3)
    assert cast_to_grammar(sliced, REPORT.fields["topics"]).equals(wanted)
    assert cast_to_grammar(pa.array([7, None], pa.int32()), Key()).to_pylist() == ["7", None]
    assert cast_to_grammar(pa.array([1], pa.uint8()), Whole()).type == pa.int64()
    assert cast_to_grammar(pa.nulls(2), REPORT).type == STRUCTURED


def test_unfit_arrow_values_are_refused() -> None:
    either = KeyOr(Object({"peer": Key()}, required=("peer",)))
    with pytest.raises(UnfitType):
        cast_to_grammar(pa.array([1.5]), either)
    with pytest.raises(UnfitType):
        cast_to_grammar(pa.array(["5"]), Whole())
    broken = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(pa.ArrowInvalid):
        cast_to_grammar(broken, Key())


def test_unfit_and_unknown_columns_are_named() -> None:
    copy = pa.struct([("message", pa.string()), ("size", pa.int64())])
    schema = pa.schema(
        [
            ("peer", pa.float64()),
            ("interval", pa.int8()),
            ("colour", pa.string()),
            ("sent", pa.list_(copy)),
            ("roles", pa.list_(pa.struct([("role", pa.string()), ("role", pa.string())]))),
        ]
    )
    unfit = list(unfit_columns(schema))
    assert [name for name, *_ in unfit] == ["peer", "roles"]
    assert unfit[0] == ("peer", "double", "string or integer")
    assert unknown_columns(schema) == ["colour", "sent[].size"]
