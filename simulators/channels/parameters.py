"""Parameters of the channel simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.model.wording import amount
from vizpub.simulators.channels.laws import PAGE_LAWS, PROFILES, ClientProfile, PageLaw
from vizpub.simulators.engine.parameters import Count, Duration, Positive
from vizpub.simulators.engine.specs import parse

Assignment = Literal["random", "rr", "pc", "lc"]
Scheduler = Literal["fifo", "rxw", "lwf", "drop"]
MAPPINGS = ("random", "c", "cd", "offline-c", "perfect-c")
STATIC = ("offline-c", "perfect-c")
"""Those that map each page once, before the run."""
READINGS = {
    "rr": "assignment rr: the channels are dealt to the clients in turn",
    "cd": "mapping cd: as c, but of tied channels the one with the fewest pages waiting",
    "offline-c": "mapping offline-c: c, once for each page before the run",
    "perfect-c": "mapping perfect-c: a smallest set of channels, once for each page before the run",
    "lwf": "scheduler lwf: longest wait first, summed over the waiting updates of a page and the "
    "clients that want it",
    "drop": "scheduler drop: rxw; beyond --drop-above waiting pages the least wanted one is lost",
    "poisson": "pages poisson: Poisson's law over the pages of a source",
}
"""What we took where pages of the paper are missing, by the name that it is chosen by."""


@dataclass(frozen=True)
class ChannelParameters:
    """Parameters of the server, its channels and their clients."""

    channels: Annotated[
        Positive, Meta(description="Number of channels; of the peers, 0 is the server, then these.")
    ] = 8
    listen: Annotated[Positive, Meta(description="Channels that each client listens to.")] = 3
    assignment: Annotated[
        Assignment,
        Meta(
            description="Which ones: random, rr (in turn; our reading), pc (by pages), "
            "lc (similar clients together)."
        ),
    ] = "lc"
    mapping: Annotated[
        str,
        Meta(
            description="Which channels carry a page: random, c (greedy cover), cd (c, of tied "
            "channels the least loaded; our reading); static: offline-c, perfect-c (least cover; "
            "our reading of both), file:FILE (lines page,channel)."
        ),
    ] = "offline-c"
    scheduler: Annotated[
        Scheduler,
        Meta(
            description="Which page a channel sends next: fifo, rxw, lwf (longest wait of all its "
            "clients; our reading), drop (rxw that loses pages under load; our reading)."
        ),
    ] = "rxw"
    drop_above: Annotated[
        Positive, Meta(description="Pages that may wait in a channel of scheduler drop.")
    ] = 20
    buffer: Annotated[
        Count, Meta(description="Pages that may wait in a channel, others are lost; 0: no limit.")
    ] = 0
    coalesce: Annotated[
        bool, Meta(description="A newer update of a page replaces one that still waits.")
    ] = False
    transmission: Annotated[Duration, Meta(description="Time to transmit a page of 512 bytes.")] = (
        "10ms"
    )
    page_bytes: Annotated[Positive, Meta(description="Least bytes of a page.")] = 512
    page_bytes_high: Annotated[
        Count, Meta(description="Most bytes of a page, all in between as likely; 0: all the least.")
    ] = 0
    gap: Annotated[Duration, Meta(description="Mean time between two updates, exponential.")] = (
        "20ms"
    )
    first_update: Annotated[Positive, Meta(description="The first interval with updates.")] = 1
    last_update: Annotated[
        Count | None, Meta(description="The last interval with updates; none: the run's last.")
    ] = None
    pages: Annotated[
        str,
        Meta(
            description="Which page an update is of: uniform, zipf:EXPONENT, poisson:MEAN (our "
            "reading), file:FILE (lines page,probability)."
        ),
    ] = "uniform"
    sources: Annotated[Positive, Meta(description="Data sources, each with a hot spot.")] = 5
    items: Annotated[Positive, Meta(description="Pages of a source.")] = 20
    profile: Annotated[
        str,
        Meta(
            description="Which pages clients want: uniform:PAGES, zipf:PAGES, "
            "clustered:CLUSTERS,size=N,range=N, file:FILE (lines client,page)."
        ),
    ] = "uniform"
    startup_profile: Annotated[
        str,
        Meta(description="Profiles by which channels are assigned; same: those of the run."),
    ] = "same"

    def __post_init__(self) -> None:
        """Check the models in advance. Raises: UseError."""
        self.get_pages()
        self.get_profile()
        self.get_startup_profile()
        if self.mapping not in MAPPINGS and not self.mapping.startswith("file:"):
            raise UseError(f"mapping is {', '.join(MAPPINGS)} or file:FILE, not '{self.mapping}'")
        if self.listen > self.channels:
            raise UseError(
                f"a client cannot listen to {self.listen} of {amount(self.channels, 'channel')}"
            )
        if self.page_bytes_high and self.page_bytes_high < self.page_bytes:
            raise UseError(
                f"page_bytes_high {self.page_bytes_high} is less than page_bytes {self.page_bytes}"
            )

    def get_pages(self) -> PageLaw:
        """The law of the pages."""
        return parse(self.pages, PAGE_LAWS, "pages")

    def get_profile(self) -> ClientProfile:
        """The profiles."""
        return parse(self.profile, PROFILES, "profile")

    def get_startup_profile(self) -> ClientProfile | None:
        """The profiles of the assignment; null = those of the run."""
        if self.startup_profile == "same":
            return None
        return parse(self.startup_profile, PROFILES, "startup profile")

    @property
    def is_static(self) -> bool:
        """True if the channels of a page are the same during the whole run."""
        return self.mapping in STATIC or self.mapping.startswith("file:")

    @property
    def readings(self) -> list[str]:
        """Rules that are our reading, since pages of the paper are missing."""
        chosen = (self.assignment, self.mapping, self.scheduler, self.pages.partition(":")[0])
        return [READINGS[name] for name in chosen if name in READINGS]
