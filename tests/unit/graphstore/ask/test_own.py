"""The header of a query of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub import cypher
from vizpub.graphstore.ask.own import read_query
from vizpub.model.errors import UseError


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.cypher"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize("name", [n for n in cypher.names("queries") if n != "history"])
def test_copy_of_a_shipped_query_has_its_header(tmp_path: Path, name: str) -> None:
    """But for `history`, whose modes are its own."""
    shipped = cypher.statement("queries", name)
    found = read_query(written(tmp_path, shipped.text))
    assert (found.parameters, found.columns) == (shipped.parameters, shipped.columns)
    assert (found.needs, found.times) == (shipped.needs, shipped.times)


def test_query_without_a_header_has_no_parameters(tmp_path: Path) -> None:
    assert read_query(written(tmp_path, "RETURN 1")).parameters == ()


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("// $at", "'// [$]at'"),
        ("// $at tik – the time", "'tik'.* tick, peer,"),
        ("// $at tick? – t\n// $who peer($at) – p", r"[$]who .*peer\([$]at\)"),
        ("// partition: $time\n// $at tick – t", r"[$]time"),
        ("// partition: $at\n// $at tick? – t", r"[$]at"),
        ("// $levels levels – l", r"[$]levels .*levels\([$]at\)"),
    ],
)
def test_wrong_header_is_refused_in_words(tmp_path: Path, header: str, said: str) -> None:
    with pytest.raises(UseError, match=said):
        read_query(written(tmp_path, f"// Mine.\n//\n{header}\nRETURN 1"))
