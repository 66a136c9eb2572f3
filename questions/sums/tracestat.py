"""Counts of a run by the definitions of tracestat, of go-libp2p-pubsub-tracer, from its files.

tracestat also counts that every publisher delivers its own message to itself, after 0 ms. Here
`delivered` counts first arrivals from others, and `delivered_and_own` is tracestat's "delivered".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.run import DUPLICATES
from vizpub.questions.names import NamedRun
from vizpub.questions.sql import answer, read_answer

Values = dict[str, int | None]
"""Numbers by name; null = unknown."""
COUNTED = (
    *("published", "delivered", "delivered_and_own", "duplicates", "rejected"),
    *("rpcs_sent", "rpcs_received", "rpcs_dropped"),
)
"""The names of what is counted, of peers and of the run."""
SHARES = (5, 25, 50, 75, 90, 95, 99, 100)
"""Per cent of the deliveries whose delay `quantiles` gives."""
GOSSIPSUB = {
    "published": "gossipsub_message_published_total",
    "duplicates": "gossipsub_message_duplicate_total",
}
"""Names proposed for gossipsub's own metrics of the same meaning: docs/metrics.md."""

_CHOSEN = "WITH chosen AS (FROM publications WHERE $topic IS NULL OR topic = $topic)"
_ARRIVED = "SELECT peer, count(*) AS n FROM {} JOIN chosen USING (message) WHERE {} GROUP BY ALL"
_COUNTS = {
    "published": (
        "publications",
        "SELECT publisher AS peer, count(*) AS n FROM chosen WHERE publication_known GROUP BY ALL",
    ),
    "delivered": ("receptions", _ARRIVED.format("receptions", "first")),
    "duplicates": ("receptions", _ARRIVED.format("receptions", "NOT first")),
    "rejected": ("rejections", _ARRIVED.format("rejections", "true")),
}
"""What is counted of messages: the table that must be known, and peer, n."""
_RPCS = {"rpcs_sent": "rpcs_sent", "rpcs_received": "rpcs_received", "rpcs_dropped": "dropped"}
"""What is counted of RPCs, and its column of traffic; peers may count duplicates likewise."""
_REPORTING = "SELECT peer FROM peers WHERE is_reporter UNION SELECT peer FROM receptions"
_TAKING_PART = {
    "publications": "SELECT publisher AS peer FROM chosen WHERE publication_known",
    "receptions": "SELECT peer FROM receptions JOIN chosen USING (message)",
    "rejections": "SELECT peer FROM rejections JOIN chosen USING (message)",
    "subscriptions": "SELECT peer FROM subscriptions WHERE topic = $topic",
    "links": "SELECT src AS peer FROM links WHERE topic = $topic",
}
"""The peers that report something of a topic, by table."""
_REJECTED = "(SELECT count(*) FROM rejections WHERE rejections.message = chosen.message)"
_DELAY = "TRY_CAST(floor((arrived.time_us::HUGEINT - chosen.time_us + 500) / 1000) AS BIGINT)"
_DELAYS = f"""
{_CHOSEN}
SELECT {_DELAY} AS ms, count(*) AS n
FROM receptions arrived JOIN chosen USING (message)
WHERE first AND publication_known AND ms IS NOT NULL GROUP BY ALL ORDER BY ms
"""
_MESSAGES = f"""
{_CHOSEN}, arrivals AS (
  SELECT message, count(*) FILTER (first) AS delivered,
         count(*) FILTER (NOT first) AS duplicates,
         list({_DELAY} ORDER BY {_DELAY})
           FILTER (first AND publication_known AND {_DELAY} IS NOT NULL) AS delays_ms
  FROM receptions arrived JOIN chosen USING (message) GROUP BY ALL)
SELECT name AS message, topic_name AS topic, publisher_name AS publisher,
       coalesce(delivered, 0) AS delivered, {{duplicates}} AS duplicates,
       {{rejected}} AS rejected, coalesce(delays_ms, []) AS delays_ms
FROM chosen LEFT JOIN arrivals USING (message)
ORDER BY chosen.message
"""

_CONTROL = """
SELECT kind, TRY_CAST(sum(messages_sent) AS BIGINT) AS sent,
       TRY_CAST(sum(messages_received) AS BIGINT) AS received,
       TRY_CAST(sum(messages_dropped) AS BIGINT) AS dropped
FROM control WHERE $topic IS NULL OR topic = $topic GROUP BY kind ORDER BY kind
"""


@dataclass(frozen=True)
class Tracestat:
    """Counts of a run, or of one of its topics, which RPCs are not counted by.

    Raises: UnknownName, AmbiguousName for the topic; UseError where receptions are unknown.
    """

    run: NamedRun
    topic: str | None = None

    def __post_init__(self) -> None:
        """Check that there is something to count."""
        self.run.facts.check_known("receptions")

    @property
    def topics(self) -> list[str]:
        """The names of the topics that are counted."""
        names = self.run.topics
        return names if self._topic is None else [names[self._topic]]

    def per_peer(self) -> list[dict[str, str | int | None]]:
        """A row for each peer that reports: `peer`, and COUNTED."""
        shown = ["peers.name AS peer", *(f"{self._column(name)} AS {name}" for name in COUNTED)]
        joined = []
        for name, (_, counted) in _COUNTS.items():
            if self._knows(name) and name not in self._of_traffic:
                joined.append(f'LEFT JOIN ({counted}) "{name}" USING (peer)')
        takes_part = "SELECT peer FROM peers"
        if self._topic is not None:
            takes_part = " UNION ".join(
                statement for table, statement in _TAKING_PART.items() if self.run.stored.has(table)
            )
        if self._of_traffic:
            # One unknown interval makes the sum unknown.
            sums = (
                f"CASE WHEN count(*) = count({c}) THEN TRY_CAST(sum({c}) AS BIGINT) END AS {name}"
                for name, c in self._of_traffic.items()
            )
            traffic = f"SELECT peer, {', '.join(sums)} FROM traffic GROUP BY ALL"
            joined.append(f"LEFT JOIN ({traffic}) counters USING (peer)")
        statement = (
            f"{_CHOSEN} SELECT {', '.join(shown)} FROM peers {' '.join(joined)} "
            f"WHERE peer IN ({_REPORTING}) AND peer IN ({takes_part}) ORDER BY peers.peer"
        )
        answers = read_answer(self.run.stored, statement, topic=self._topic)
        rows: list[dict[str, str | int | None]] = answers.to_pylist()
        return rows

    def _column(self, name: str) -> str:
        if not self._knows(name):
            return "NULL::BIGINT"
        if name == "delivered_and_own":
            return 'coalesce("delivered".n, 0) + coalesce("published".n, 0)'
        return f"counters.{name}" if name in self._of_traffic else f'coalesce("{name}".n, 0)'

    def _knows(self, name: str) -> bool:
        if name in _RPCS or name in self._of_traffic:
            return name in self._of_traffic
        if self.run.facts.is_sample:
            return False
        if name == "duplicates":
            return self._lists_duplicates
        if name in ("published", "delivered_and_own"):
            return self._publications_known
        return self.run.stored.has(_COUNTS[name][0])

    @cached_property
    def _lists_duplicates(self) -> bool:
        return self.run.facts.knows(DUPLICATES)

    @cached_property
    def _of_traffic(self) -> dict[str, str]:
        """The columns of traffic that count something, by its name; they are of no topic."""
        if self._topic is not None or not self.run.stored.has("traffic"):
            return {}
        return _RPCS if self._lists_duplicates else {**_RPCS, "duplicates": "duplicates"}

    @cached_property
    def _publications_known(self) -> bool:
        """True if any publication is reported; otherwise messages are known by their arrivals."""
        flags = self.run.stored.read("publications", ["publication_known"])["publication_known"]
        return not len(flags) or bool(pc.any(flags).as_py())

    def per_message(self) -> Iterator[pa.RecordBatch]:
        """message, topic, publisher, delivered, duplicates, rejected and delays_ms, of what arrived
        from others, in order; a row for each message.
        """
        statement = _MESSAGES.format(
            duplicates="coalesce(duplicates, 0)" if self._lists_duplicates else "NULL::BIGINT",
            rejected=_REJECTED if self._knows("rejected") else "NULL::BIGINT",
        )
        with answer(self.run.stored, statement, {"topic": self._topic}) as batches:
            yield from batches

    def control(self) -> Values:
        """control_ihave_sent and others: control messages by kind; none where these are unknown, as
        over all topics of a sample.
        """
        sampled = self._topic is None and self.run.facts.is_sample
        if sampled or not self.run.stored.has("control"):
            return {}
        rows = read_answer(self.run.stored, _CONTROL, topic=self._topic).to_pylist()
        ways = ("sent", "received", "dropped")
        return {f"control_{row['kind']}_{way}": row[way] for row in rows for way in ways}

    def delays(self) -> list[tuple[int, int]]:
        """The distribution of propagation delays: ms, rounded, and how many deliveries took up to
        these; without the publishers' own, and without those whose times are unknown.
        """
        counts, total = [], 0
        for row in read_answer(self.run.stored, _DELAYS, topic=self._topic).to_pylist():
            total += row["n"]
            counts.append((row["ms"], total))
        return counts

    @cached_property
    def _topic(self) -> int | None:
        return None if self.topic is None else self.run.topic_index(self.topic)


def totals(peers: list[dict[str, str | int | None]]) -> Values:
    """`peers`, the number of them, and the sums of COUNTED; one that is unknown of a peer is."""
    sums = {name: [peer[name] for peer in peers] for name in COUNTED}
    return {"peers": len(peers)} | {
        name: None if None in values else sum(int(value) for value in values if value is not None)
        for name, values in sums.items()
    }


def distribution(delays: list[tuple[int, int]], published: int | None) -> list[Values]:
    """Return rows ms, delivered, delivered_and_own: the number of deliveries that took at most so
    many ms, without and with those of the `published` messages to their own publishers, each after
    0 ms. Null is unknown; no rows where no delay is known.
    """
    delivered = dict(delays)
    if delivered and published:  # clocks may differ, so that some delays are below 0
        delivered.setdefault(0, max((n for ms, n in delays if ms < 0), default=0))
    return [
        {
            "ms": ms,
            "delivered": delivered[ms],
            "delivered_and_own": (
                None if published is None else delivered[ms] + (published if ms >= 0 else 0)
            ),
        }
        for ms in sorted(delivered)
    ]


def quantiles(delays: list[tuple[int, int]]) -> Values:
    """delay_ms_p50 and others of SHARES: the ms up to which that share had arrived."""
    total = delays[-1][1] if delays else 0
    return {
        f"delay_ms_p{share}": next((ms for ms, n in delays if n * 100 >= total * share), None)
        for share in SHARES
    }
