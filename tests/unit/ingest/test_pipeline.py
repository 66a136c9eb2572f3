"""How an ingest begins, or does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.pipeline import IngestRequest, ingest
from model.errors import InputError, UseError


def test_failed_start_leaves_no_run_behind(tmp_path: Path) -> None:
    (tmp_path / "green").write_text("of no source\n")
    with pytest.raises(InputError, match="no source recognises"):
        ingest(IngestRequest((str(tmp_path / "green"),), "monday", tmp_path))
    assert list((tmp_path / "runs").iterdir()) == []


def test_name_of_the_run_is_checked_before_the_input(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=r"'\.\./x' cannot name a run"):
        ingest(IngestRequest((str(tmp_path / "nowhere"),), "../x", tmp_path))
    assert list(tmp_path.iterdir()) == []
