"""What simulations and other long work will take, before they start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vizpub.cli.settings import Settings
from vizpub.cli.terminal.streams import confirm

if TYPE_CHECKING:
    from vizpub.simulators.engine.costs import Costs
    from vizpub.simulators.engine.plan import Plan

LONG_S = 600
"""Seconds that work may take without a question."""


def confirm_costs(settings: Settings, work: str, costs: Costs, *, yes: bool) -> None:
    """Say what the work ("the rings take") will take if that is much, and ask whether to go on.

    Raises: typer.Abort for no, UseError without an answer.
    """
    import psutil

    from vizpub.experiments.formatting import duration_text, size_text

    there_are = psutil.virtual_memory().available
    if costs.seconds < LONG_S and costs.memory_bytes < there_are:
        return
    text = f"{work} at least about {duration_text(costs.seconds)}"
    if costs.memory_bytes > there_are / 10:
        text += f", and {size_text(costs.memory_bytes)} of memory; {size_text(there_are)} are free"
    settings.say(text)
    if not yes:
        confirm("Go on?")


def confirm_simulations(settings: Settings, plans: Sequence[Plan], *, yes: bool) -> None:
    """Estimate what simulations will take by their beginnings, and ask as `confirm_costs` does.

    Raises: typer.Abort for no, UseError without an answer.
    """
    from vizpub.simulators.engine.estimate import estimate, is_much

    if not is_much(plans):
        return
    with settings.progress() as progress:
        progress("estimate time and memory", 0, 0)
        costs = estimate(plans, os.cpu_count() or 1)
    work = "simulation takes" if len(plans) == 1 else f"{len(plans)} simulations take"
    confirm_costs(settings, f"the {work}", costs, yes=yes)
