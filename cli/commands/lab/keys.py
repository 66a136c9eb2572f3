"""`vizpub lab keys`: how evenly consistent hashing spreads keys over peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.commands.lab.costs import confirm_costs
from vizpub.cli.options import Output, Yes
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.simulators.engine.parameters import MOST, MOST_PEERS

_COLUMNS = ("seed", "mean", "p1", "p99", "max", "p99/mean", "max/mean")


@dataclass(frozen=True)
class _RingOptions:
    """The ring, and its keys."""

    peers: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_PEERS, help="Peers on the ring.")
    ] = 10_000
    keys: Annotated[int, typer.Option(metavar="N", min=1, max=MOST, help="Random keys.")] = 500_000
    virtual: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Places of a peer on the ring.")
    ] = 1
    bits: Annotated[int, typer.Option(metavar="N", min=3, max=256, help="Bits of an id.")] = 160
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the (first) ring.")] = 1
    runs: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Rings, with consecutive seeds.")
    ] = 1
    yes: Yes = False


def keys(settings: Settings, ring: _RingOptions, output: Output) -> None:
    """Show how many keys peers of Chord own: the mean, percentiles (nearest rank) and the most.

    The ids are those of `lab simulate chord` with the same seed, peers and bits, and so are the
    keys of its option --keys. Consistent hashing gives a 99th percentile of ln 100 = 4.6 times the
    mean; several places on the ring for each peer make it smaller.

    Examples:

    ```
    vizpub lab keys --peers 10000 --keys 500000
    vizpub lab keys --virtual 20 --runs 5 -f csv
    ```
    """
    from vizpub.simulators.protocols.chord.ring import ChordRing, ring_costs

    costs = ring_costs(ring.peers * ring.virtual, ring.keys, ring.runs)
    confirm_costs(settings, "the rings take", costs, yes=ring.yes)
    rows = []
    for seed in range(ring.seed, ring.seed + ring.runs):
        chord = ChordRing.of(ring.peers, ring.bits, seed)
        owned = sorted(chord.count_owned(chord.draw_keys(ring.keys), ring.virtual))
        mean = ring.keys / ring.peers
        low, high = (owned[-(-len(owned) * percent // 100) - 1] for percent in (1, 99))
        rows.append((seed, mean, low, high, owned[-1], high / mean, owned[-1] / mean))
    show_rows(OutputRows(_COLUMNS, rows), output, settings)
