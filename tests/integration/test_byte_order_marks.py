"""Files that users write mean the same with a byte order mark and without."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vizpub.cli.main import app
from vizpub.collector.closing import peers_of
from vizpub.collector.inputs.kafka_topic import read_config
from vizpub.collector.inputs.pull import TargetList
from vizpub.experiments import definition
from vizpub.graphstore.ask.own import read_query
from vizpub.machine.private import read_private
from vizpub.simulators.engine.files import lines
from vizpub.simulators.world.scenario import read_events

CYPHER = """// The peers.
//
// $run run – the run
//
// -> peer: the peer
MATCH (p:Peer {run: $run}) RETURN p.key AS peer
"""
EXPERIMENT = (Path(definition.__file__).parent / "chord-lookups.toml").read_text("utf-8")


def configured(path: Path) -> str:
    words = ["--config", str(path), "config", "show", "--format", "csv"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("peers", "alpha\n# others\n\nbeta\n", peers_of),
        ("targets", "http://127.0.0.1:1/a\n", lambda path: TargetList((str(path),)).targets()),
        ("topic", "group.id=a\n", read_config),
        ("own.cypher", CYPHER, read_query),
        ("token", "secret", read_private),
        ("subscriptions.csv", "peer,topic\n0,news\n", lambda path: list(lines(str(path)))),
        ("churn.toml", 'events = ["kill 30 % at interval 4"]', lambda path: read_events(str(path))),
        ("experiment.toml", EXPERIMENT, lambda path: definition.read_experiment(str(path)).content),
        ("vizpub.toml", 'workspace = "ours"\n', configured),
    ],
)
def test_byte_order_mark_changes_nothing(
    tmp_path: Path, name: str, text: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    answers = []
    for mark in (b"", BOM_UTF8):
        path.write_bytes(mark + text.encode())
        path.chmod(0o600)
        answers.append(read(path))
    assert answers[0] == answers[1]


def test_comments_name_no_peers(tmp_path: Path) -> None:
    path = tmp_path / "peers"
    path.write_text("# the lab\nalpha\n  # more\nbeta # 2\n")
    assert peers_of(path) == {"alpha", "beta # 2"}
