"""Runs whose peers have attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.grouped import play_groups
from tests.support.played import Played
from vizpub.questions.run import Run


@pytest.fixture(params=range(4))
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Played:
    return play_groups(tmp_path, request.param)


@pytest.fixture
def run(played: Played, tmp_path: Path) -> Run:
    return Run.open(tmp_path, played.name)
