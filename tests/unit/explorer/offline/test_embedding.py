"""What an exported file asks beforehand, against the same questions one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.grouped import play_groups
from tests.support.played import write_play
from vizpub.explorer import answers
from vizpub.explorer.history import History
from vizpub.explorer.offline.embedding import ExportPart, questions
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run


@pytest.mark.parametrize("part", [ExportPart(), ExportPart((1, 3)), ExportPart(topic=0)], ids=str)
def test_missed_peers_are_those_of_each_message(tmp_path: Path, part: ExportPart) -> None:
    made = play_groups(tmp_path, 1)
    made.rows["publications"][4]["publication_known"] = False
    write_play(tmp_path / "again", made)
    run = NamedRun(open_run(tmp_path / "again", made.name))
    asked = {key: ask() for key, ask in questions(run, part) if key.startswith("missed ")}
    history = History(run)
    assert asked == {
        key: answers.missed_peers(history, int(key.removeprefix("missed "))) for key in asked
    }
    counts = [len(json.loads(body)["rows"] or ()) for _, body in asked.values()]
    assert sum(counts) > 1
    assert min(counts) == 0
