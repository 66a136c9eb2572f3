"""`vizpub lab`: overlays that are simulated or constructed, and experiments."""

from __future__ import annotations

from vizpub.cli.commands.lab import channels, construct, experiment, simulate
from vizpub.cli.commands.lab.keys import keys
from vizpub.cli.commands.lab.stress import stress
from vizpub.cli.groups import command_group, with_examples

GROUP = command_group(
    "lab",
    with_examples(
        "Simulate and construct overlays, and run experiments.",
        "vizpub lab simulate poldercast --peers 200 --publications every:10 --ingest rings",
        "vizpub lab experiment list",
    ),
    simulate=simulate.GROUP,
    construct=construct.GROUP,
    channels=channels.GROUP,
    keys=keys,
    stress=stress,
    experiment=experiment.GROUP,
)
