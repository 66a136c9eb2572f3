"""The kernel's side of the page in a notebook: messages in, bytes out."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.explored import exploring
from tests.support.hostile import TAKEN
from tests.support.played import play
from tests.support.widgets import FrontEnd
from vizpub.explorer.notebook import DOCUMENT, RunView, page_document
from vizpub.explorer.server.web import QUESTIONS
from vizpub.model.clock import Clock

OVERLAY = "api/runs/monday/overlay?layer=mesh&topic=0"


@pytest.fixture
def view(made_once: Path) -> RunView:
    return RunView(made_once, "monday")


@pytest.fixture
def front(view: RunView) -> FrontEnd:
    return FrontEnd(view)


def test_answers_are_those_of_the_server(front: FrontEnd, made_once: Path) -> None:
    queries = {
        "/places/{layout}": "", "/column": "name=degree&block=0", "/extent": "name=degree",
        "/curve": "name=links", "/peer": "peer=1&tick=0", "/peer/curves": "peer=1&name=degree",
        "/path": "from=0&to=2&tick=0", "/coverage": "along=hop", "/message": "message=0",
        "/missed": "message=0", "/rows": "table=links&down=true", "/rows.csv": "table=links",
    }  # fmt: skip
    with exploring(made_once) as server:
        for question in ["", *QUESTIONS, "/rows.csv", "/nosuch"]:
            path = f"api/runs/monday{question}?{queries.get(question, '')}"
            path = path.replace("{layout}", "circle")
            told, expected = front.ask({"id": path, "path": path}), server.ask(f"/{path}")
            assert told.id == path
            assert (told.status, told.content) == (expected.status, expected.content), path
            for name, value in told.headers.items():
                assert expected.headers[name] == value


def test_question_is_answered_while_the_kernel_has_a_loop(front: FrontEnd) -> None:
    async def asked() -> int:
        return front.ask({"id": 1, "path": OVERLAY}).status

    assert asyncio.run(asked()) == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("api/runs/nosuch", 404),
        ("api/runs/monday?of=another", 409),
        ("api/runs/monday/column?name=nosuch&block=0", 404),
        ("api/runs/monday/peer?peer=99&tick=0", 400),
        ("api/runs/monday/commands", 404),
        ("api/runs/..%2f..%2fetc", 404),
        ("../../pyproject.toml", 404),
        ("..%2f..%2fpyproject.toml", 404),
        ("/etc/passwd", 404),
        ("api/runs/monday/extent?name=\ud800\x00é", 404),
        ("\ud800\x00é", 404),
    ],
)
def test_wrong_path_is_refused(front: FrontEnd, path: str, status: int) -> None:
    told = front.ask({"id": 7, "path": path})
    assert (told.id, told.status) == (7, status)
    assert json.loads(told.content)["error"]


@pytest.mark.parametrize("content", [None, "page", [], {}, {"id": 1}, {"path": ["api/runs"]}])
def test_other_content_is_refused(front: FrontEnd, content: Any) -> None:
    assert front.ask(content).status == 404


def test_unexpected_failure_is_answered_and_logged(
    front: FrontEnd, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("vizpub.explorer.facts.list_runs", fail)
    told = front.ask({"id": 3, "path": "api/runs"})
    assert (told.id, told.status) == (3, 500)
    assert "RuntimeError: broken" in caplog.text


def test_hostile_names_arrive_unchanged(tmp_path: Path) -> None:
    play(tmp_path, "hostile", Clock(1, None, 0, 9), TAKEN, TAKEN, seed=3)
    front = FrontEnd(RunView(tmp_path, "hostile"))
    facts = json.loads(front.ask({"id": 1, "path": "api/runs/hostile"}).content)
    assert facts["peers"] == [*TAKEN]
    for name in TAKEN:
        path = f"api/runs/hostile/messages?text={quote(name)}"
        assert front.ask({"id": name, "path": path}).id == name
        assert front.ask({"id": 1, "path": f"api/runs/{quote(name, safe='')}"}).status in (400, 404)


def test_state_follows_the_page_and_leads_it(view: RunView, front: FrontEnd) -> None:
    assert view.state == "#/run/monday/overlay"
    front.move("#/run/monday/overlay?t=5&sel=1")
    assert view.state == "#/run/monday/overlay?t=5&sel=1"
    front.sent.clear()
    view.state = "#/run/monday/messages"
    ((told, _),) = front.sent
    assert told["state"] == {"state": "#/run/monday/messages"}


def test_saved_state_of_the_widget_has_no_page(view: RunView) -> None:
    assert len(json.dumps(view.get_state())) < 10_000


def test_page_is_one_document_that_asks_nobody(front: FrontEnd) -> None:
    told = front.ask({"id": 0, "path": DOCUMENT})
    assert told.content == page_document()
    assert len(told.content) < 1_000_000
    document = gzip.decompress(told.content).decode()
    assert len(re.findall("</script", document)) == len(re.findall("<script>", document)) == 2
    assert len(re.findall("</style", document)) == 1
    assert "<!--" not in document
    policy = re.search('http-equiv="content-security-policy" content="(.*?)"', document)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
