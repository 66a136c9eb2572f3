"""`vizpub export bctrace`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.support.grouped import play_groups
from tests.support.words import tells, unknown
from vizpub.cli.main import app


def test_message_is_written_to_a_file_or_standard_output(tmp_path: Path) -> None:
    play_groups(tmp_path, 1)
    words = ["--workspace", str(tmp_path), "export", "bctrace", "groups", "--message"]
    result = CliRunner().invoke(app, [*words, "m3", "-o", str(tmp_path / "m3.ndjson")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "m3.ndjson").read_text()
    header, *events, _ = map(json.loads, text.splitlines())
    tells(result.stderr, f"{len(header['nodes'])} nodes", f"{len(events)} events")
    assert CliRunner().invoke(app, [*words, "m3"]).stdout == text
    refused = CliRunner().invoke(app, [*words, "m99", "-o", str(tmp_path / "m99.ndjson")])
    assert refused.exit_code == 2
    tells(refused.stderr, unknown("message", "m99"))
    assert not (tmp_path / "m99.ndjson").exists()
