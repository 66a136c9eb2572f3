"""Tokens of a collection, after a power cut, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.collector.http.tokens import ADMIN, KINDS, READ, REPORT, Tokens


@pytest.mark.parametrize("left", ["", "\n"])
def test_token_that_a_power_cut_left_empty_is_made_again(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "tokens"
    kept = Tokens(folder)
    admin = (folder / ADMIN).read_text()
    (folder / REPORT).write_text(left)
    again = Tokens(folder)
    tokens = {kind: (folder / kind).read_text().strip() for kind in KINDS}
    assert len({*tokens.values(), ""}) == 4
    assert again.allows(tokens[REPORT], REPORT)
    assert not again.allows("", REPORT)
    assert (folder / ADMIN).read_text() == admin
    assert again.allows(tokens[READ], READ) is kept.allows(tokens[READ], READ) is True
