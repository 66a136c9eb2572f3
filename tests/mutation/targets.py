"""What is changed, which tests must find it, and which changes make no difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """A module that checks others or that few others check, and its own tests."""

    module: str
    tests: tuple[str, ...]
    equivalent: Mapping[str, str] = field(default_factory=dict)
    """A change that makes no difference → why."""
    most: int = 150
    """The number of changes to try; where there are more, they are drawn with a fixed seed."""


UNKNOWN = "in the place of what is unknown is written -1 in the end"
ONE_LENGTH = "all columns are of one length"
CUT = "it is looked at further, and cut to as many in the end"

TARGETS = {
    target.module: target
    for target in (
        Target(
            "vizpub.graphstore.verify.verify",
            (
                "tests/unit/graphstore/verify/test_verify.py",
                "tests/integration/graph/test_verify_nodes.py",
                "tests/integration/graph/test_partitions.py::test_corrupt_copy_is_found_by_verify",
                "tests/integration/graph/test_verify.py",
                "tests/integration/graph/test_verify_kept.py",
                "tests/integration/graph/test_verify_all.py"
                "::test_value_that_cannot_be_computed_with_is_seen",
            ),
            {
                "_FullComparison._compare_nodes: len(differences) < _SHOWN → "
                "len(differences) <= _SHOWN": CUT,
                "_KeptComparison.differences: 3 → 4": "peers have a label that one side alone has, "
                "so the numbers of peers differ, and no other sums are looked at",
            },
        ),
        Target(
            "vizpub.graphstore.verify.checksums",
            (
                "tests/unit/graphstore/verify/test_kept_checksums.py",
                "tests/integration/graph/test_partitions.py::test_corrupt_copy_is_found_by_verify",
                "tests/integration/graph/test_verify.py",
            ),
            {
                "Checksums.add: 0 → 1": ONE_LENGTH,
                "Checksums.add_nodes: 0 → 1 (3)": ONE_LENGTH,
                "add_up: True → False": "all are a number and a checksum by each prime",
                "Checksums.add_nodes: rows[step.key].cast(pa.int64()) → rows[step.key]": "an id "
                "is below 2^31, as each of PRIMES is",
                "_pair: values.cast(pa.float64()) → values": "floats of 32 bits become the same "
                "numbers",
                "_pair: 0 → 1": UNKNOWN,
                "_fill_nulls: 0 → 1": UNKNOWN,
                "_fill_nulls: False → True": "what was null is filled, so nothing is copied",
            },
        ),
        Target("vizpub.graphstore.ask.tokens", ("tests/unit/graphstore/ask/test_tokens.py",)),
        Target(
            "vizpub.graphstore.ask.judge",
            ("tests/unit/graphstore/ask/test_judge.py",),
            {"check_words: False → True": "it is read after a bracket alone, which sets it"},
        ),
        Target(
            "vizpub.analytics.messages.message_fold",
            (
                "tests/unit/analytics/messages/test_message_fold.py",
                "tests/integration/test_own_metrics.py",
            ),
            {
                "MessageFold._missed_rows: eligible.values > delivered.values → "
                "eligible.values >= delivered.values": "of a message that nobody missed nobody is "
                "found, though it is looked at",
                "MessageFold._match_arrivals: 1 → 2 (2)": "any order of those that are "
                "reported as first and of others is the same",
                "MessageFold._measure_own: 1 → 2": "a bound that no message asks for",
            },
        ),
        Target(
            "vizpub.analytics.messages.message_measures",
            ("tests/unit/analytics/messages/test_message_fold.py",),
        ),
        Target("vizpub.analytics.interest", ("tests/unit/analytics/test_interest.py",)),
        Target("vizpub.analytics.messages.hops", ("tests/unit/analytics/messages/test_hops.py",)),
        Target("vizpub.ingest.plan", ("tests/integration/test_plan.py",)),
        Target(
            "vizpub.ingest.growth",
            ("tests/integration/test_plan.py",),
            {"AppendPlan.variables: 0 → 1": "a run without publications numbers no messages"},
        ),
    )
}
