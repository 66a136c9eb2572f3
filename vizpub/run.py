"""A run for notebooks and programs: its tables, and the page that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vizpub.machine.modules import needing_extra
from vizpub.questions import run

if TYPE_CHECKING:
    from vizpub.explorer.notebook import RunView


class Run(run.Run):
    """A complete run of a workspace."""

    def explore(self, state: str | None = None, height: int = 720) -> RunView:
        """Return the page of `vizpub explore` at this run, as a widget of `height` pixels.

        `state` is the address of what it shows first; the widget's own `state` follows what is
        chosen, and can be set. Raises: UseError without the extra `notebook`.
        """
        with needing_extra("notebook", "run.explore()"):
            from vizpub.explorer.notebook import RunView
        workspace = self.stored.directory.parents[1]
        shown = {} if state is None else {"state": state}
        return RunView(workspace, self.facts.name, height=height, **shown)
