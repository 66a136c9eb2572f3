"""`vizpub live tell` ends when it says, whatever answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.bad_collectors import HEAD, answering
from tests.support.words import tells
from vizpub.cli.commands.live import tell
from vizpub.cli.main import app


def test_command_that_waits_for_ever_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tell, "_EXPIRED_S", 0.1)
    queued = {"id": 7, "peer": "17", "action": "leave", "state": "queued", "reason": None}
    text = json.dumps(queued).encode()
    answer = HEAD + b"content-length: %d\r\n\r\n" % len(text) + text
    with answering(lambda: iter([answer])) as badly:
        command = ["live", "tell", "lab", "17", "leave", "--url", badly.url, "--expires", "300ms"]
        done = CliRunner().invoke(app, ["--workspace", str(tmp_path), *command])
    assert done.exit_code == 3
    tells(done.stderr, badly.url, "command 7")
