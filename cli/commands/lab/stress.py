"""`vizpub lab stress`: what a simulated run's messages cost physical links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.commands.lab.costs import confirm_costs
from vizpub.cli.options import Output, Yes
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.questions.run import Run
    from vizpub.simulators.world.routers import RouterNetwork
    from vizpub.simulators.world.stress import Spread

_AT_ONCE = 100
"""Messages whose receptions are held at once."""


def stress(
    settings: Settings,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run simulated with routers.")],
    output: Output,
    messages: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="The last N messages.")
    ] = 100,
    yes: Yes = False,
) -> None:
    """Show what messages of a simulated run cost the links between routers.

    The run needs a topology of routers (`--latency transit-stub`). The ways that the messages took
    in the overlay are compared with unicast from their publishers to the same subscribers, and with
    multicast by the fastest ways. All numbers are means over the messages, except the stretch:
    links that carry a copy, copies on all links, those on the busiest link of a peer and on the
    busiest link between routers; and the delay of deliveries over that of the fastest way, all
    together (stretch) and the median.

    Examples:

    ```
    vizpub lab stress far
    vizpub lab stress far --messages 10 -f csv
    ```
    """
    from vizpub.questions.run import Run
    from vizpub.simulators.world.stress import WayCost, compare_ways, stress_costs

    stored = Run.open(settings.workspace, run)
    stored.facts.check_known("receptions", "publications")
    receptions, published = map(stored.stored.rows, ("receptions", "publications"))
    copies = receptions * min(1.0, messages / max(published, 1))
    confirm_costs(settings, "the comparison takes", stress_costs(copies), yes=yes)
    costs = compare_ways(_routers_of(stored), _spreads(stored, messages))
    if not costs:
        raise UseError(f"no message of run '{run}' reached a subscriber")
    show_rows(OutputRows(WayCost._fields, costs), output, settings)


def _routers_of(run: Run) -> RouterNetwork:
    """The topology that the run was simulated with. Raises: UseError if there is none."""
    from vizpub.simulators.engine.clock import stream
    from vizpub.simulators.engine.specs import parse
    from vizpub.simulators.world.latency import LATENCIES, TransitStubLatency

    text, seed = run.facts.parameters.get("latency"), run.facts.seed
    latency = parse(text, LATENCIES, "latency") if isinstance(text, str) else None
    if not isinstance(latency, TransitStubLatency) or seed is None:
        raise UseError(
            f"run '{run.facts.name}' was not simulated with routers",
            "give `vizpub lab simulate` --latency transit-stub",
        )
    return latency.routers(int(run.facts.parameters["peers"]), stream(seed, "latency"))


def _spreads(run: Run, messages: int) -> Iterator[Spread]:
    """How the last messages went; peers by their numbers in the simulation."""
    import pyarrow.compute as pc

    from vizpub.simulators.world.stress import Spread

    number_of = [int(name) for name in run.peers]
    columns = ["message", "publisher", "time_us"]
    published = run.stored.read("publications", columns).sort_by("message").to_pylist()
    published = published[-messages:]
    columns = ["message", "peer", "previous_hop", "time_us", "first", "subscribed"]
    for start in range(0, len(published), _AT_ONCE):
        messages_now = published[start : start + _AT_ONCE]
        chosen = pc.field("message").isin([row["message"] for row in messages_now])
        arrivals = defaultdict(list)
        for row in run.stored.read("receptions", columns, chosen).to_pylist():
            arrivals[row["message"]].append(row)
        for message in messages_now:
            rows = arrivals[message["message"]]
            yield Spread(
                number_of[message["publisher"]],
                [(number_of[row["previous_hop"]], number_of[row["peer"]]) for row in rows],
                {
                    number_of[row["peer"]]: row["time_us"] - message["time_us"]
                    for row in rows
                    if row["first"] and row["subscribed"]
                },
            )
