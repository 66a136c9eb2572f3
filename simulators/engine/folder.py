"""The folder of a simulation: `reports/` for ingest, and its description `simulation.json`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vizpub.machine.files import replacing
from vizpub.model.errors import UseError
from vizpub.simulators.engine.plan import Plan

NO_SIMULATION = "is not empty and holds no simulation"
OTHER_FILE = "does not describe a simulation"


@dataclass(frozen=True)
class MessageCounts:
    """Number of messages of a kind in a run."""

    kind: str
    traffic: str
    """control or publication"""
    sent: int
    bytes: int
    """Bytes of the sent messages."""
    received: int
    lost: int
    """In transit, or sent to a peer that was down on arrival."""


@dataclass(frozen=True)
class Result:
    """The result of a simulation."""

    intervals: int
    peers: int
    """Peers that were up at some time."""
    published: int
    unpublished: int
    """Planned publications whose publisher, or every subscriber, was down."""
    seconds: float
    """Seconds that it took."""
    messages: tuple[MessageCounts, ...]
    changed: int = 0
    """Subscriptions that peers began or ended by a change of interest."""
    unchanged: int = 0
    """Changes that were not made: the peer was down, or had already made them."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """What the system says of itself (System.header_facts)."""


@dataclass(frozen=True)
class Folder:
    """The folder of one simulation."""

    path: Path

    @classmethod
    def of_plan(cls, parent: Path, plan: Plan) -> Folder:
        """The folder of a plan in a parent, by its name; where another simulation has that, it has
        a digest of the plan, too. Raises: UseError.
        """
        folder = cls(parent / plan.name)
        if not folder._about.exists() or folder._read_description()["plan"] == _identity(plan):
            return folder
        text = json.dumps(_identity(plan), sort_keys=True)
        return cls(parent / f"{plan.name}-{blake2b(text.encode(), digest_size=3).hexdigest()}")

    def absolute(self) -> Folder:
        """The same folder with an absolute path, for processes in other directories."""
        return Folder(self.path.absolute())

    @property
    def reports(self) -> Path:
        """The folder to ingest."""
        return self.path / "reports"

    @property
    def _about(self) -> Path:
        return self.path / "simulation.json"

    def result(self, plan: Plan, *, replace: bool = False) -> Result | None:
        """The result of the plan if it was simulated here; null if not, or with `replace`.

        Raises: UseError if the folder holds other files, or another simulation without `replace`.
        """
        if not self._about.exists():
            if self.path.exists() and any(self.path.iterdir()):
                raise UseError(f"{self.path} {NO_SIMULATION}")
            return None
        about = self._read_description()
        if replace:
            return None
        if about["plan"] != _identity(plan):
            raise UseError(
                f"{self.path} holds another simulation ({', '.join(_list_changes(about, plan))}); "
                "give another --out, or --replace to replace it"
            )
        result = about["result"]
        return result and Result(
            **{**result, "messages": tuple(MessageCounts(**kind) for kind in result["messages"])}
        )

    def _read_description(self) -> dict[str, Any]:
        try:
            about = json.loads(self._about.read_text("utf-8"))
        except ValueError:
            about = None
        if not isinstance(about, dict) or about.keys() != {"plan", "result"}:
            raise UseError(f"{self._about} {OTHER_FILE}; give another --out")
        return about

    def begin(self, plan: Plan) -> None:
        """Empty the folder for the simulation."""
        is_ours = self._about.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._describe(plan, None)  # before: after a kill, what is left is not taken for complete
        if is_ours and self.reports.exists():
            shutil.rmtree(self.reports)

    def complete(self, plan: Plan, result: Result) -> None:
        """Mark the simulation as complete."""
        self._describe(plan, result)

    def _describe(self, plan: Plan, result: Result | None) -> None:
        about = {"plan": _identity(plan), "result": result and asdict(result)}
        with replacing(self._about) as new:
            new.write_text(json.dumps(about, indent=1), "utf-8")


def _identity(plan: Plan) -> dict[str, Any]:
    return {"system": plan.system, "seed": plan.seed, **plan.describe()}


def _list_changes(about: dict[str, Any], plan: Plan) -> list[str]:
    earlier, now = about["plan"], _identity(plan)
    names = [name for name in {**earlier, **now} if earlier.get(name) != now.get(name)]
    return [f"{name} {earlier.get(name)}, not {now.get(name)}" for name in names]
