"""`vizpub lab stress` of a run without routers; with them: test_simulated_overlays.py."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from vizpub.cli.main import app


def test_run_without_routers_is_refused(workspace: Path) -> None:
    result = CliRunner().invoke(app, ["--workspace", str(workspace), "lab", "stress", "monday"])
    assert result.exit_code == 2
    assert "--latency transit-stub" in result.output
