"""`vizpub live tell` and a peer that `vizpub live collect --pull` asks, as processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.collected import Collecting, running, until
from tests.support.collecting import obeying
from vizpub.cli.main import app
from vizpub.reports.pulled import ReportServer

pytestmark = pytest.mark.timeout(600)


@pytest.mark.long
def test_peer_that_is_asked_obeys_tell(tmp_path: Path) -> None:
    present = {"a": True, "b": True}

    def obey(told: dict[str, Any]) -> None:
        peer, comes = told["peer"], told["action"] == "join"
        if not comes and sum(present.values()) == 1:
            server.answer(told["id"], "it is the last")
        else:
            present[peer] = comes
            server.answer(told["id"])

    with ReportServer() as server, obeying(server, obey):
        for peer in present:
            server.report({"peer": peer, "interval": 0, "neighbors": []})
        asked = ("--no-token", "--no-load", "--allow-commands", "--pull", server.url)
        with running(Collecting(tmp_path, asked)) as case:
            collector = case.answering()
            until(lambda: collector.get()["progress"]["reports"] == 2)

            def told(peer: str, action: str) -> tuple[int, str]:
                command = ["--workspace", str(tmp_path), "live", "tell", "lab", peer, action]
                done = CliRunner().invoke(app, [*command, "--expires", "5m"])
                return done.exit_code, done.output

            assert told("a", "leave")[0] == 0
            assert present == {"a": False, "b": True}
            code, text = told("b", "leave")
            assert (code, "it is the last" in text) == (1, True)
            assert told("a", "join")[0] == 0
            assert present == {"a": True, "b": True}
