"""The file itself: what is in it, and what a browser may run of it."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.words import naming, tells
from vizpub.explorer.offline import exported, rows
from vizpub.explorer.offline.embedding import ExportPart
from vizpub.explorer.offline.exported import compress, html_page
from vizpub.model.errors import UseError
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run


@pytest.fixture(scope="module")
def monday(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamedRun]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIZPUB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield NamedRun(open_run(made_once, "monday"))


@pytest.fixture(scope="module")
def page(monday: NamedRun) -> str:
    return html_page(monday, ExportPart())


def block(page: str, name: str) -> str:
    (text,) = re.findall(f'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL)
    return str(text)


def decompress(coded: str) -> bytes:
    return gzip.decompress(b64decode(coded))


def index_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decompress(block(page, "index")))
    return found


def content(page: str, key: str) -> bytes:
    begin, end = index_of(page)[key]
    return decompress(block(page, "data")[begin:end])


def test_file_is_the_same_each_time(monday: NamedRun, page: str) -> None:
    assert html_page(monday, ExportPart()) == page


def test_policy_allows_the_scripts_in_the_file_alone(page: str) -> None:
    (policy,) = re.findall('content-security-policy" content="(.*?)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    (boot,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    scripts = [boot.encode(), *(content(page, f"script {of}") for of in ("deck.gl", "page"))]
    hashes = [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in scripts]
    assert rules["script-src"].split() == hashes
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules


def test_names_are_in_no_part_that_is_read_as_markup(page: str) -> None:
    for name in ("alice", "news"):
        assert name not in page
        assert name.encode() in content(page, "facts")


def test_answer_that_is_refused_has_the_reason(page: str, monday: NamedRun) -> None:
    texts = {key: of for key, of in index_of(page).items() if isinstance(of, str)}
    assert texts.pop("run") == "monday"
    assert all(
        key.startswith(("coverage", "message", "missed", "places", "table")) for key in texts
    )


def test_part_has_its_messages_and_intervals_alone(monday: NamedRun) -> None:
    found = html_page(monday, ExportPart(window=(1, 2), topic=0))
    facts = json.loads(content(found, "facts"))
    assert (facts["clock"]["first"], facts["clock"]["last"]) == (1, 2)
    assert facts["exported"]["topic"] == 0
    asked = monday.stored.read("publications").to_pylist()
    kept = [row["message"] for row in asked if row["topic"] == 0 and 1 <= row["interval"] <= 2]
    keys = [key for key in index_of(found) if key.startswith("message ")]
    assert keys == [f"message {number}" for number in kept]


def test_large_file_is_refused_with_a_way_out(
    monday: NamedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported, "MOST_BYTES", 10_000)
    with pytest.raises(UseError, match=naming("'monday'", "--from", "--topic")):
        html_page(monday, ExportPart())


def test_large_table_is_left_out_with_a_way_out(
    monday: NamedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 3)
    texts = index_of(html_page(monday, ExportPart()))
    for name in ("links", "topics"):
        count = monday.stored.rows(name)
        assert isinstance(texts[f"table {name}"], str) == (count > 3), name
    tells(texts["table links"], "links", monday.stored.rows("links"), "vizpub export csv")


def test_progress_counts_the_answers(monday: NamedRun) -> None:
    told: list[tuple[int, int]] = []
    html_page(monday, ExportPart(), lambda _step, done, total, _note="": told.append((done, total)))
    assert told[-1][0] == told[-1][1] == len(told) - 1


def test_packing_is_gzip_in_base64() -> None:
    assert decompress(compress(b"</script>")) == b"</script>"
