"""`vizpub live`: runs that are collected while their peers run."""

from __future__ import annotations

from vizpub.cli.commands.live.collect import collect
from vizpub.cli.commands.live.report import report
from vizpub.cli.commands.live.tell import tell
from vizpub.cli.commands.live.watch import watch
from vizpub.cli.groups import command_group, with_examples

GROUP = command_group(
    "live",
    with_examples(
        "Collect a run from peers while they run.",
        "vizpub live collect lab",
        "vizpub live watch lab",
    ),
    collect=collect,
    report=report,
    watch=watch,
    tell=tell,
)
