"""A run that answers questions about churn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vizpub.questions.churn.lifetimes import lifetimes, survival
from vizpub.questions.churn.turnover import DEGREES, turnover
from vizpub.questions.frames import Frame
from vizpub.questions.names import NamedRun, Where


@dataclass(frozen=True, repr=False)
class ChurningRun(NamedRun):
    """A stored run whose links, peers and subscriptions come and go."""

    def lifetimes(
        self,
        by: str | None = None,
        where: Where | None = None,
        layers: Sequence[str] | None = None,
    ) -> Frame:
        """The lengths of links, stays of peers and subscriptions: a row for each layer and, `by`
        'topic' or an attribute of peers, for each topic or group; see
        vizpub.questions.churn.lifetimes.

        Raises: UnknownName, UseError for a run without links, presence or attributes.
        """
        rows = lifetimes(self, by, where or Where(), layers)
        return Frame(f"{self.facts.name}, lifetimes", rows)

    def survival(
        self,
        by: str | None = None,
        where: Where | None = None,
        layers: Sequence[str] | None = None,
    ) -> Frame:
        """The share of links, stays and subscriptions that last longer than each length, as
        `lifetimes`. Raises: as `lifetimes`.
        """
        rows = survival(self, by, where or Where(), layers)
        return Frame(f"{self.facts.name}, survival", rows)

    def turnover(
        self,
        by: str | None = None,
        where: Where | None = None,
        layers: Sequence[str] | None = None,
        degrees: tuple[int, int] = DEGREES,
    ) -> Frame:
        """The changes of neighbourhoods: a row for each interval and layer, `by` as in `lifetimes`;
        `degrees` are D_low and D_high. See vizpub.questions.churn.turnover.

        Raises: as `lifetimes`.
        """
        rows = turnover(self, by, where or Where(), layers, degrees)
        return Frame(f"{self.facts.name}, turnover", rows)
