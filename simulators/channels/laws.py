"""Which pages the server updates, and which ones clients want.

Pages are numbered from 0, those of a data source one after the other; the first page of a source
is its hot spot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta
from scipy.stats import poisson

from vizpub.model.arrays import Bools, Floats
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood
from vizpub.simulators.engine.parameters import Positive, PositiveReal

_Exponent = Annotated[PositiveReal, Meta(description="How fast interest falls from the hot spot.")]
_Wanted = Annotated[Positive, Meta(description="Pages that each client wants.")]


@dataclass(frozen=True)
class PageDatabase:
    """The pages of the server."""

    sources: int
    """Data sources, each with a hot spot."""
    items: int
    """Pages of each source."""
    names: Sequence[str] | None = None
    """Names of the pages; null = their numbers from 0."""

    @property
    def pages(self) -> int:
        """Number of pages."""
        return self.sources * self.items

    @property
    def numbers(self) -> dict[str, int]:
        """The pages by name."""
        return {name: page for page, name in enumerate(self.names or map(str, range(self.pages)))}


class PageLaw(Protocol):
    """How likely an update is one of each page."""

    example: ClassVar[str]

    def weights(self, items: int) -> Floats:
        """Weights of a source's pages, from its hot spot on."""


@dataclass(frozen=True)
class UniformPages:
    """Every page is as likely."""

    example: ClassVar[str] = "uniform"

    def weights(self, items: int) -> Floats:
        """All the same."""
        return np.ones(items)


@dataclass(frozen=True)
class ZipfPages:
    """Page k = 1, 2, … of a source has the weight k^-exponent."""

    exponent: _Exponent = 1.0
    example: ClassVar[str] = "zipf:1"

    def weights(self, items: int) -> Floats:
        """By rank."""
        return _zipf(items, self.exponent)


@dataclass(frozen=True)
class PoissonPages:
    """Page k = 0, 1, … of a source by Poisson's law, cut off at the end of the source."""

    mean: Annotated[PositiveReal, Meta(description="Mean of k before the cut.")] = 3.0
    example: ClassVar[str] = "poisson:3"

    def weights(self, items: int) -> Floats:
        """By number."""
        probabilities: Floats = poisson.pmf(np.arange(items), self.mean)
        return probabilities


@dataclass(frozen=True)
class FilePages:
    """Pages and their probabilities from a file, of one source."""

    file: Annotated[str, Meta(description="Lines page,probability, plain or gzip: front,0.2022.")]
    example: ClassVar[str] = "file:pages.csv"

    def read_pages(self) -> tuple[list[str], Floats]:
        """Names and probabilities, scaled to the sum 1 where it is within 1 % of that.

        Raises: InputError naming the line, or the sum.
        """
        probabilities: dict[str, float] = {}
        for number, row in rows(self.file, ("page", "probability")):
            try:
                value = float(row[1])
            except ValueError:
                value = -1.0
            if not 0 <= value <= 1:
                raise not_understood(self.file, number, f"'{row[1]}' is not a probability")
            if row[0] in probabilities:
                raise not_understood(self.file, number, f"page '{row[0]}' is given twice")
            probabilities[row[0]] = value
        total = sum(probabilities.values())
        if abs(total - 1) > _ROUNDED:
            raise InputError(
                f"{self.file}: the probabilities add up to {total:g}, not to 1",
                "add a page that no client wants for the rest",
            )
        return list(probabilities), np.array(list(probabilities.values()))

    def weights(self, items: int) -> Floats:
        """Probabilities from the file."""
        return self.read_pages()[1]


_ROUNDED = 0.01
PAGE_LAWS: Mapping[str, type[PageLaw]] = {
    "uniform": UniformPages,
    "zipf": ZipfPages,
    "poisson": PoissonPages,
    "file": FilePages,
}


class ClientProfile(Protocol):
    """A law of the pages that a client wants."""

    example: ClassVar[str]

    def wants(self, clients: int, database: PageDatabase, random: np.random.Generator) -> Bools:
        """bool[clients, pages]: whether a client wants a page. Raises: UseError, InputError."""


@dataclass(frozen=True)
class UniformProfile:
    """Each client wants the same number of pages, all equally likely."""

    pages: _Wanted = 10
    example: ClassVar[str] = "uniform:pages=10"

    def wants(self, clients: int, database: PageDatabase, random: np.random.Generator) -> Bools:
        """See ClientProfile.wants."""
        _refuse_too_many("pages", self.pages, database.pages)
        return _draw_columns(np.ones(database.pages), self.pages, clients, random)


@dataclass(frozen=True)
class ZipfProfile:
    """One hot spot: the first page of the server is wanted most, the last one least."""

    pages: _Wanted = 10
    exponent: _Exponent = 1.0
    example: ClassVar[str] = "zipf:pages=10,exponent=1"

    def wants(self, clients: int, database: PageDatabase, random: np.random.Generator) -> Bools:
        """See ClientProfile.wants."""
        _refuse_too_many("pages", self.pages, database.pages)
        return _draw_columns(_zipf(database.pages, self.exponent), self.pages, clients, random)


@dataclass(frozen=True)
class ClusteredProfile:
    """Each client has clusters of pages around some hot spots, by Zipf's law (ZClusProf)."""

    clusters: Annotated[Positive, Meta(description="Hot spots of a client, all different.")] = 2
    size: Annotated[Positive, Meta(description="Pages of a cluster.")] = 5
    range_: Annotated[
        Positive | None,
        Meta(description="Pages from the hot spot on that a cluster is of; none: the source's."),
    ] = None
    exponent: _Exponent = 1.0
    example: ClassVar[str] = "clustered:clusters=2,size=5,range=20"

    def wants(self, clients: int, database: PageDatabase, random: np.random.Generator) -> Bools:
        """See ClientProfile.wants."""
        range_ = database.items if self.range_ is None else self.range_
        _refuse_too_many("clusters", self.clusters, database.sources, "hot spots (--sources)")
        _refuse_too_many("range", range_, database.items, "pages of a source (--items)")
        _refuse_too_many("size", self.size, range_, "pages of its range")
        hot = _draw_columns(np.ones(database.sources), self.clusters, clients, random)
        wanted = np.zeros((clients, database.sources, database.items), dtype=bool)
        local = _draw_columns(
            _zipf(range_, self.exponent), self.size, clients * database.sources, random
        ).reshape(clients, database.sources, range_)
        wanted[:, :, :range_] = local & hot[:, :, None]
        return wanted.reshape(clients, database.pages)


@dataclass(frozen=True)
class FileProfile:
    """Profiles from a file."""

    file: Annotated[str, Meta(description="Lines client,page, clients from 0: 17,front.")]
    example: ClassVar[str] = "file:profiles.csv"

    def wants(self, clients: int, database: PageDatabase, random: np.random.Generator) -> Bools:
        """See ClientProfile.wants."""
        wanted, numbers = np.zeros((clients, database.pages), dtype=bool), database.numbers
        for number, (client, page) in rows(self.file, ("client", "page")):
            if not is_whole_number(client) or int(client) >= clients:
                why = f"'{client}' is not a client: clients are 0 to {clients - 1}"
                raise not_understood(self.file, number, why)
            wanted[int(client), page_of(self.file, number, page, numbers)] = True
        return wanted


PROFILES: Mapping[str, type[ClientProfile]] = {
    "uniform": UniformProfile,
    "zipf": ZipfProfile,
    "clustered": ClusteredProfile,
    "file": FileProfile,
}


def rows(file: str, heads: tuple[str, str]) -> list[tuple[int, tuple[str, str]]]:
    """The lines of a CSV file of two columns with their numbers, without the heads.

    Raises: InputError naming the line.
    """
    lines_of_two = []
    for number, text in lines(file):
        cells = tuple(cell.strip() for cell in text.split(","))
        if len(cells) != len(heads) or not all(cells):
            raise not_understood(file, number, f"'{text[:40]}' is not {','.join(heads)}")
        if cells != heads:
            lines_of_two.append((number, (cells[0], cells[1])))
    return lines_of_two


def page_of(file: str, number: int, name: str, numbers: Mapping[str, int]) -> int:
    """The page of a name in a line of a file. Raises: InputError."""
    if name not in numbers:
        raise not_understood(file, number, f"the server has no page '{name}'")
    return numbers[name]


def _zipf(count: int, exponent: float) -> Floats:
    weights: Floats = np.arange(1, count + 1, dtype=float) ** -exponent
    return weights


def _draw_columns(weights: Floats, each: int, rows_: int, random: np.random.Generator) -> Bools:
    """Rows with `each` distinct columns, drawn one after the other by weight."""
    # The largest log-weights with Gumbel noise are such draws, all at once.
    keys = np.log(weights) + random.gumbel(size=(rows_, len(weights)))
    drawn = np.zeros(keys.shape, dtype=bool)
    largest = np.argpartition(-keys, each - 1, axis=1)[:, :each]
    np.put_along_axis(drawn, largest, True, axis=1)
    return drawn


def _refuse_too_many(
    name: str, wanted: int, available: int, of: str = "pages of the server"
) -> None:
    if wanted > available:
        raise UseError(f"profile: {name} {wanted} is more than the {available} {of}")
