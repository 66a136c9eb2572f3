"""Staged tables, which stages pass on and the complete run does not have; and texts of stages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from vizpub.analytics import steps
from vizpub.analytics.steps import Step
from vizpub.model.columns import INTERVAL, PEER, Column, Table, always, maybe
from vizpub.model.tables import COPY_FLAGS

_MESSAGE = always("message", "int64", "dense index of the message")
_NAME = always("name", "string", "its name in the source")
_TIMES = (
    maybe("time_us", "int64", "time", "µs"),
    INTERVAL,
    always("tick", "int64", "time", "ticks"),
)


def _staged_table(name: str, row: str, *columns: Column) -> Table:
    return Table(f"staged/{name}", row, columns, (columns[0].name,))


MESSAGES = _staged_table("messages", "message that is evaluated", _MESSAGE, _NAME)
NAMED_AGAIN = _staged_table(
    "named_again", "message of the run that new input names", _MESSAGE, _NAME
)
UNREPORTED = _staged_table(
    "unreported",
    "report that leaves out what others have",
    INTERVAL,
    PEER,
    maybe("receptions", "bool", "true = not reported"),
    maybe("subscriptions", "bool", "true = not reported"),
)
CLAIMS = _staged_table(
    "claims",
    "report of a publication, or what a part of the arrivals say of it together",
    _MESSAGE,
    always("is_report", "bool", "it reports the publication"),
    maybe("topic", "string", "name of its topic"),
    maybe("publisher", "string", "name of its publisher"),
    *_TIMES,
    maybe("bytes", "int64", "size of one copy"),
)
ARRIVALS = _staged_table(
    "arrivals",
    "arrival of a message at a peer",
    _MESSAGE,
    PEER,
    maybe("previous_hop", "int32", "the peer that sent it"),
    *_TIMES,
    maybe("arrival", "int64", "orders those of a message, peer and tick"),
    maybe("first", "bool", "it is the first one, as reported"),
    maybe("hop", "int32", "as reported", "hops"),
    maybe("subscribed", "bool", "the peer to the topic, as reported"),
    *COPY_FLAGS,
)
STAGED = {of.name: of for of in (MESSAGES, NAMED_AGAIN, UNREPORTED, CLAIMS, ARRIVALS)}


def is_staged(name: str) -> bool:
    """Return True for a table that is not part of the complete run."""
    return name.startswith("staged/")


def ingest_step(name: str) -> Step:
    """Return the step of that name from the texts of the package ingest."""
    return steps.load_step(name, "vizpub.ingest")


@cache
def macro_text() -> str:
    """Return the macros that the texts use, as SQL."""
    return (files("vizpub.ingest") / "sql/macros.sql").read_text("utf-8")
