"""Layouts of the channel simulator, and the mapping that its paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.parameters import ChannelParameters

PRINTED = (0.202219, 0.103672, 0.103469, 0.109922, 0.0579375, 0.0712656, 0.0645312, 0.0725781)
"""TotalP of the channels 0 to 7 (A.5 of the paper)."""


def layout(clients: int = 50, seed: int = 1, **chosen: Any) -> ChannelLayout:
    """A layout of those parameters."""
    return ChannelLayout(ChannelParameters(**chosen), clients, seed)


def printed_layout(folder: Path, seed: int = 1, **chosen: Any) -> ChannelLayout:
    """The printed list: a page for each channel, of its TotalP, and a page that nobody wants. Ten
    clients listen to all channels and want all other pages.
    """
    pages = [*enumerate(PRINTED), ("rest", 0.2144)]
    (folder / "pages.csv").write_text("".join(f"{page},{p}\n" for page, p in pages))
    (folder / "map.csv").write_text("".join(f"{page},{page}\n" for page in range(8)))
    wanted = [(client, page) for client in range(10) for page in range(8)]
    (folder / "profiles.csv").write_text("".join(f"{c},{page}\n" for c, page in wanted))
    files = {"pages": "pages", "mapping": "map", "profile": "profiles"}
    named: dict[str, Any] = {key: f"file:{folder / name}.csv" for key, name in files.items()}
    return layout(10, seed, **{"channels": 8, "listen": 8, "transmission": "1s", **named, **chosen})
