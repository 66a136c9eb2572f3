"""Commands to peers: over HTTP, through a restart, and from the command line."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.collecting import Options, Served, collector_in, header, serving
from tests.support.words import naming, tells
from vizpub.cli.commands.live.tell import EXPIRED
from vizpub.cli.main import app
from vizpub.collector.closing import ClosingRules
from vizpub.collector.commands import WAITING, PeerCommand, PeerCommands
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import InputError

Serve = Callable[..., AbstractContextManager[Served]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    def make(**options: Any) -> AbstractContextManager[Served]:
        return serving(collector_in(tmp_path, Options(**{"commands": True, **options})))

    return make


def reported(served: Served, *peers: str) -> None:
    told = [{"format": "vizpub.report/1", "peer": peer, "interval": 0} for peer in peers]
    assert served.post(b"\n".join(json.dumps(one).encode() for one in told))[0] == 202


def waiting(served: Served) -> list[tuple[int, str, str]]:
    found = served.ask("GET", "/v1/runs/lab/commands")[1]["commands"]
    return [(one["id"], one["peer"], one["action"]) for one in found]


def state(served: Served, number: int) -> str:
    return str(served.ask("GET", f"/v1/runs/lab/commands/{number}")[1]["state"])


def test_command_waits_until_its_reporter_answers(serve: Serve) -> None:
    with serve() as served:
        reported(served, "a", "b")
        assert served.ask("GET", "/v1/runs/lab")[1]["commands"] is True
        for peer, action in (("a", "leave"), ("b", "leave"), ("a", "join")):
            code, told = served.send("/commands", peer=peer, action=action, seconds=60)
            assert (code, told["state"]) == (201, "queued")
        assert waiting(served) == [(1, "a", "leave"), (2, "b", "leave"), (3, "a", "join")]
        assert served.send("/commands/1", obeyed=True)[0] == 200
        assert served.send("/commands/2", obeyed=False, reason="it is the last")[0] == 200
        assert served.send("/commands/1", obeyed=False)[1]["state"] == "obeyed"  # the first counts
        assert [state(served, number) for number in (1, 2, 3)] == ["obeyed", "refused", "queued"]
        assert waiting(served) == [(3, "a", "join")]
    with serve() as served:  # another collector knows them
        assert waiting(served) == [(3, "a", "join")]
        assert state(served, 2) == "refused"
        assert served.send("/commands", peer="b", action="join")[1]["id"] == 4


def test_command_expires(serve: Serve) -> None:
    with serve() as served:
        reported(served, "a")
        served.send("/commands", peer="a", action="leave", seconds=0.05)
        time.sleep(0.1)
        assert waiting(served) == []
        assert state(served, 1) == "expired"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"peer": "z", "action": "leave"}, "no peer 'z'"),
        ({"peer": "a", "action": "dance"}, "none of leave, join"),
        ({"peer": "a", "action": "leave", "seconds": 0}, "expires"),
        ({"peer": "a", "action": "leave", "seconds": 1e9}, "expires"),
        ({"peer": "a"}, "action"),
        ({"peer": 7, "action": "leave"}, "str"),
        ({"peer": "a", "action": "leave", "now": True}, "unknown field"),
    ],
)
def test_senseless_command_is_refused(serve: Serve, asked: dict[str, Any], why: str) -> None:
    with serve() as served:
        reported(served, "a")
        code, told = served.send("/commands", **asked)
        assert code == 400
        assert why in told["error"]
        assert waiting(served) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"peer": "\xff", "action": "leave"}'])
def test_command_that_is_no_object_is_refused(serve: Serve, body: bytes) -> None:
    with serve() as served:
        kind = {"content_type": "application/json"}
        code, told, _ = served.ask("POST", "/v1/runs/lab/commands", body, **kind)
        assert code == 400
        assert told["error"]


def test_commands_are_off_unless_they_are_allowed(serve: Serve) -> None:
    with serve(commands=False) as served:
        reported(served, "a")
        assert served.ask("GET", "/v1/runs/lab")[1]["commands"] is False
        assert served.ask("GET", "/v1/runs/lab/commands")[0] == 403
        assert served.send("/commands", peer="a", action="leave")[0] == 403


def test_only_the_admin_token_gives_commands(serve: Serve, tmp_path: Path) -> None:
    with serve(tokens=True) as served:
        asked = json.dumps({"peer": "a", "action": "leave"}).encode()
        for name, codes in {"report": (401, 200), "read": (401, 401), "admin": (400, 200)}.items():
            token = (CollectionPlace(tmp_path, "lab").tokens / name).read_text().strip()
            given = {"authorization": f"Bearer {token}", "content_type": "application/json"}
            gave = served.ask("POST", "/v1/runs/lab/commands", asked, **given)[0]
            fetched = served.ask("GET", "/v1/runs/lab/commands", **given)[0]
            assert (gave, fetched) == codes, name


def test_form_of_a_web_page_gives_no_command(serve: Serve) -> None:
    with serve() as served:
        reported(served, "a")
        asked = json.dumps({"peer": "a", "action": "leave"}).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            assert served.ask("POST", "/v1/runs/lab/commands", asked, content_type=kind)[0] == 415


def test_tell_waits_for_the_answer(serve: Serve, tmp_path: Path) -> None:
    def told(*arguments: str) -> tuple[int, str]:
        command = [
            "--workspace",
            str(tmp_path),
            "live",
            "tell",
            "lab",
            *arguments,
            "--url",
            served.url,
        ]
        done = CliRunner().invoke(app, command)
        return done.exit_code, " ".join(done.output.split())

    def obey(number: int, **answer: Any) -> threading.Thread:
        def work() -> None:
            while not any(one[0] == number for one in waiting(served)):
                time.sleep(0.02)
            served.send(f"/commands/{number}", **answer)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    with serve() as served:
        reported(served, "a")
        reporters = [obey(1, obeyed=True), obey(2, obeyed=False, reason="too few would be left")]
        code, text = told("a", "leave")
        assert code == 0
        tells(text, "command 1", "'a'", "leave")
        code, text = told("a", "join")
        assert (code, "too few would be left" in text) == (1, True)
        code, text = told("a", "leave", "--expires", "100ms")
        assert (code, EXPIRED in text) == (1, True)
        assert told("a", "leave", "--no-wait")[0] == 0
        code, text = told("nobody", "leave")
        assert (code, "'nobody'" in text) == (2, True)
        for reporter in reporters:
            reporter.join()


def test_many_commands_forget_those_that_are_over_first() -> None:
    seed = 5
    rng, known = random.Random(seed), PeerCommands()
    given: dict[int, bool] = {}
    for _ in range(5_000):
        open_now = [number for number, is_open in given.items() if is_open]
        if len(open_now) < 900:
            made = known.new_command("a", "leave", 0.0, 60.0)
            given[made.id] = True
            known.record(made)
        for number in rng.sample(open_now, min(len(open_now), 2)):
            known.record(known.with_answer(number, obeyed=True, reason=None))
            given[number] = False
    assert [one.id for one in known.open(1.0)] == [n for n, is_open in given.items() if is_open], (
        seed
    )
    assert len(known.to_json()) <= 2_000
    assert PeerCommands(known.to_json()).to_json() == known.to_json()
    with pytest.raises(InputError, match="command 1 "):
        known.get(1)


def test_first_of_two_answers_at_once_counts() -> None:
    known = PeerCommands([vars(PeerCommand(1, "a", "leave", 60.0))])
    answers = [known.with_answer(1, obeyed=obeyed, reason=None) for obeyed in (False, True)]
    for answer in answers:
        known.record(answer)
    assert known.get(1).obeyed is False


def test_answer_that_counts_is_returned_to_both_that_answer_at_once(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()

    async def work() -> list[bool | None]:
        intake = Intake(place, header(), ClosingRules(), IntakeLimits())
        intake.commands.record(PeerCommand(1, "a", "leave", 60.0))
        both = (intake.note_answer(1, obeyed=obeyed, reason=None) for obeyed in (False, True))
        answers = await asyncio.gather(*both)
        late = await intake.note_answer(1, obeyed=True, reason=None)
        await intake.log.aclose()
        return [answer.obeyed for answer in (*answers, late)]

    assert asyncio.run(work()) == [False, False, False]


def test_waiting_commands_are_bounded() -> None:
    known = PeerCommands(vars(PeerCommand(n, "a", "leave", 60.0)) for n in range(1, 1_001))
    with pytest.raises(InputError, match=naming("1,000", WAITING)):
        known.new_command("a", "leave", 0.0, 1.0)
    assert known.new_command("a", "leave", 61.0, 1.0).id == 1_001
