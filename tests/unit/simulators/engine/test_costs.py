"""Estimates of all kinds of work: more work costs more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vizpub.experiments.measured import MEASURED_NAMES, MeasuringRequest, measured_experiment
from vizpub.simulators.channels.costs import channel_costs
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.parameters import ChannelParameters
from vizpub.simulators.designs.parquet import parquet_costs
from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.protocols.chord.ring import ring_costs
from vizpub.simulators.world.stress import stress_costs
from vizpub.simulators.world.subscriptions import UniformWorkload


def layouts(clients: int, number: int = 1, **parameters: object) -> list[ChannelLayout]:
    return [ChannelLayout(ChannelParameters(**parameters), clients, n) for n in range(number)]  # type: ignore[arg-type]


def measuring(name: str, scale: str = "full", seeds: int | None = None) -> Costs:
    request = MeasuringRequest(scale, Path("nowhere"), seeds=seeds)
    return measured_experiment(name).estimate(request)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        *(
            (lambda: ring_costs(100, 100, 1), more)
            for more in (
                lambda: ring_costs(200, 100, 1),
                lambda: ring_costs(100, 200, 1),
                lambda: ring_costs(100, 100, 2),
            )
        ),
        *(
            (lambda: channel_costs(layouts(90), 1000, 15), more)
            for more in (
                lambda: channel_costs(layouts(180), 1000, 15),
                lambda: channel_costs(layouts(90, 2), 1000, 15),
                lambda: channel_costs(layouts(90), 2000, 15),
                lambda: channel_costs(layouts(90), 1000, 16),
                lambda: channel_costs(layouts(90, items=40), 1000, 15),
                lambda: channel_costs(layouts(90, mapping="perfect-c"), 1000, 15),
                lambda: channel_costs(layouts(90, mapping="cd"), 1000, 15),
            )
        ),
        (lambda: stress_costs(10), lambda: stress_costs(20)),
        *(
            (lambda: parquet_costs(100, UniformWorkload(50, 5)), more)
            for more in (
                lambda: parquet_costs(200, UniformWorkload(50, 5)),
                lambda: parquet_costs(100, UniformWorkload(50, 10)),
            )
        ),
        *((lambda n=n: measuring(n, "small"), lambda n=n: measuring(n)) for n in MEASURED_NAMES),
        *((lambda n=n: measuring(n), lambda n=n: measuring(n, seeds=50)) for n in MEASURED_NAMES),
    ],
)
def test_estimate_grows_with_each_parameter(
    less: Callable[[], Costs], more: Callable[[], Costs]
) -> None:
    few, many = less(), more()
    assert 0 < few.seconds < many.seconds
    assert 0 < few.memory_bytes <= many.memory_bytes
