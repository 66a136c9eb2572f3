"""Targets that are asked for reports: real reporters, and servers with every wrong answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.collecting import obeying
from tests.support.words import naming
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.bodies import BodyLimits
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.pull import NO_REPORTER, PullInput, TargetList
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.model.errors import UseError
from vizpub.reports.pulled import ReportServer
from vizpub.reports.records import RunHeader

PERIOD_S = 0.05
ANSWER_S = 20.0
"""That a target has to answer, however short the interval is."""
HEADER = RunHeader(run="lab", interval_us=int(PERIOD_S * 1e6), epoch="2999-01-01T00:00:00Z")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy answers late; cases in which no answer comes wait for less."""
    monkeypatch.setattr("vizpub.collector.inputs.pull._SHARE", ANSWER_S / PERIOD_S)


@dataclass
class Case:
    """A collector that asks, in a folder."""

    folder: Path
    sources: tuple[str, ...]
    limits: IntakeLimits = field(default_factory=lambda: IntakeLimits(reserve=1))
    said: list[str] = field(default_factory=list)
    period_s: float = PERIOD_S
    commands: bool = True

    def run(self, work: Callable[[PullInput], Awaitable[None]]) -> None:
        async def around() -> None:
            self.place.make()
            header = RunHeader(run="lab", interval_us=int(self.period_s * 1e6), epoch=HEADER.epoch)
            intake = Intake(self.place, header, ClosingRules(ahead=10**6), self.limits)
            web = HttpInterface(
                intake, CollectionProgress(intake), None, BodyLimits(sent=100_000, content=300_000)
            )
            web.commands = self.commands
            pull = PullInput(TargetList(self.sources), intake, self.said.append, web)
            following = asyncio.create_task(pull.follow())
            try:
                await work(pull)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await intake.log.aclose()
                await asyncio.sleep(0.05)  # the servers of a test see that the connections end

        asyncio.run(around())

    @property
    def place(self) -> CollectionPlace:
        return CollectionPlace(self.folder, "lab")

    def taken(self) -> list[tuple[str, int]]:
        records = [r.line for r in log.read_records(self.place.log) if r.kind == log.REPORT]
        return [(r["peer"], r["interval"]) for r in map(json.loads, records)]


def report(peer: str, interval: int) -> dict[str, Any]:
    return {"peer": peer, "interval": interval, "neighbors": []}


async def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.02)


def test_reports_of_targets_are_taken_once(tmp_path: Path) -> None:
    """Also by a collector that goes on after another, and from a reporter that began anew."""
    with ReportServer() as one, ReportServer() as two:
        case = Case(tmp_path, (one.url, two.url))

        async def first(pull: PullInput) -> None:
            for interval in range(3):
                one.report(report("one", interval))
                two.report(report("two", interval))
                count = 2 * interval + 2
                await until(lambda count=count: len(case.taken()) == count)  # type: ignore[misc]
            await until(lambda: all(target["up"] for target in pull.summary()))
            assert {target["url"] for target in pull.summary()} == {one.url, two.url}
            assert all(target["seconds"] > 0 for target in pull.summary())

        case.run(first)

        async def second(pull: PullInput) -> None:
            one.report(report("one", 3))
            await until(lambda: len(case.taken()) == 7)
            await asyncio.sleep(2 * PERIOD_S)
            assert [target["reports"] for target in pull.summary()] == [1, 0]

        case.run(second)
        wanted = [(peer, i) for i in range(3) for peer in ("one", "two")] + [("one", 3)]
        assert sorted(case.taken()) == sorted(wanted)
        port = int(two.url.rpartition(":")[2])
    with ReportServer(port=port) as two:
        case.sources = (two.url,)
        two.report(report("two", 3))
        case.run(lambda pull: until(lambda: ("two", 3) in case.taken()))
    assert len(case.taken()) == 8


def test_much_that_is_held_comes_in_one_turn(tmp_path: Path) -> None:
    with ReportServer(memory=2**26) as server:
        for interval in range(30):
            server.report({**report("a", interval), "topics": ["x" * 20_000]})
        case = Case(tmp_path, (server.url,))

        async def work(pull: PullInput) -> None:
            await until(lambda: bool(pull.summary()) and pull.summary()[0]["error"] is not None)
            assert "300,000 bytes" in pull.summary()[0]["error"]

        case.run(work)  # one answer is larger than this collector takes
        assert case.taken() == []


def test_targets_are_left_alone_while_nothing_is_taken(tmp_path: Path) -> None:
    with ReportServer() as server:
        server.report(report("a", 0))
        case = Case(tmp_path, (server.url,), IntakeLimits(reserve=2**62))

        async def work(pull: PullInput) -> None:
            await asyncio.sleep(3 * PERIOD_S)
            assert [target["up"] for target in pull.summary()] == [None]

        case.run(work)
        case.limits = IntakeLimits(reserve=1)
        case.run(lambda pull: until(lambda: case.taken() == [("a", 0)]))


def test_targets_of_a_file_come_and_go(tmp_path: Path) -> None:
    with ReportServer() as one, ReportServer() as two:
        one.report(report("one", 0))
        two.report(report("two", 0))
        path = tmp_path / "targets.txt"
        path.write_text(f"# peers\n{one.url}\n\n")
        case = Case(tmp_path, (str(path),))

        async def work(pull: PullInput) -> None:
            await until(lambda: case.taken() == [("one", 0)])
            path.write_text(f"{two.url}\n")
            await until(lambda: len(case.taken()) == 2)
            assert [target["url"] for target in pull.summary()] == [two.url]
            path.write_text("nonsense\n")
            await until(lambda: bool(case.said))
            assert "nonsense" in case.said[-1]
            assert [target["url"] for target in pull.summary()] == [two.url]

        case.run(work)


@contextmanager
def file_of(tmp_path: Path, text: str, mode: int = 0o600) -> Iterator[str]:
    path = tmp_path / "targets.txt"
    path.write_text(text)
    path.chmod(mode)
    yield str(path)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("ftp://a", 0o600, NO_REPORTER),
        ("http://", 0o600, NO_REPORTER),
        ("http://a:99999", 0o600, NO_REPORTER),
        ("http://[::1:8700", 0o600, NO_REPORTER),
        ("http://a..b:8700", 0o600, NO_REPORTER),
        ("http://user:word@a", 0o600, NO_REPORTER),
        ("http://a/?x=1", 0o600, NO_REPORTER),
        ("http://a one two", 0o600, "line 1"),
        ("http://a secret", 0o644, "chmod 600"),
    ],
)
def test_wrong_target_is_an_error(tmp_path: Path, text: str, mode: int, why: str) -> None:
    with file_of(tmp_path, text, mode) as name, pytest.raises(UseError, match=why):
        TargetList((name,)).targets()
    with pytest.raises(UseError, match=naming(tmp_path / "nowhere")):
        TargetList((str(tmp_path / "nowhere"),)).targets()


def test_token_of_a_target_is_given(tmp_path: Path) -> None:
    with file_of(tmp_path, "http://a:8700/ secret\nhttps://b\n") as name:
        found = TargetList((name, "http://c")).targets()
    assert [(target.url, target.token) for target in found.values()] == [
        ("http://a:8700", "secret"),
        ("https://b", None),
        ("http://c", None),
    ]


LINE = json.dumps({"format": "vizpub.report/1", **report("a", 0)}).encode() + b"\n"
OK = b"HTTP/1.1 200 OK\r\nvizpub-cursor: c\r\n"


@contextmanager
def answering(answer: bytes) -> Iterator[Callable[[], Awaitable[str]]]:
    """A server with one answer; gives what starts it in the running loop."""
    servers: list[asyncio.Server] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not answer:
            await reader.read()  # until the other side gives up
        writer.close()

    async def start() -> str:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", "answers 302"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "answers 401"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", "not HTTP"),
        (OK + b"content-length: 900\r\n\r\n" + LINE, "too early"),
        (OK + b"content-length: " + b"9" * 5000 + b"\r\n\r\n" + LINE, "digits"),
        (OK + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", "chunks"),
        (OK + b"\r\n" + LINE * 3000, "more than 100,000 bytes"),
        (OK + b"\r\n" + gzip.compress(LINE * 9000), "more than 300,000 bytes"),
        (OK + b"\r\n" + gzip.compress(LINE)[:-9], "damaged"),
        (b"HTTP/1.1 200 OK\r\nvizpub-cursor: " + b"c" * 300 + b"\r\n\r\n" + LINE, "cursor"),
        (b"", "no whole answer"),
    ],
)
def test_wrong_answer_is_told_and_nothing_of_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, why: str
) -> None:
    case = Case(tmp_path, ())
    if not answer:
        monkeypatch.setattr("vizpub.collector.inputs.pull._SHARE", 0.8)

    async def work(pull: PullInput) -> None:
        with answering(answer) as start:
            pull.sources = TargetList((await start(),))
            await until(lambda: any(target["error"] for target in pull.summary()))
            assert why in pull.summary()[0]["error"]
            assert pull.summary()[0]["up"] is False
            assert why in case.said[0]

    case.run(work)
    assert case.taken() == []


def test_refused_lines_of_a_target_are_told(tmp_path: Path) -> None:
    case = Case(tmp_path, ())

    async def work(pull: PullInput) -> None:
        with answering(OK + b"\r\n" + LINE + b"nonsense\n") as start:
            pull.sources = TargetList((await start(),))
            await until(lambda: any(target["up"] for target in pull.summary()))
            told = pull.summary()[0]
            assert (told["reports"] > 0, told["refused"] > 0) == (True, True)
            assert told["refusal"] == "not JSON"

    case.run(work)


@pytest.mark.parametrize(
    ("count", "period_s"), [(40, 0.5), pytest.param(1000, 4.0, marks=pytest.mark.long)]
)
def test_targets_are_all_asked_though_half_of_them_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, period_s: float
) -> None:
    monkeypatch.setattr("vizpub.collector.inputs.pull._SHARE", 0.8)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            name = (await reader.readuntil(b"\r\n\r\n")).split(b"/")[1].decode()
            if int(name) % 2:
                await reader.read()  # until the other side gives up
            else:
                told = json.dumps({"format": "vizpub.report/1", **report(name, 0), "seq": 1})
                writer.write(OK + b"\r\n" + told.encode() + b"\n")
        writer.close()

    case, even = Case(tmp_path, (), period_s=period_s), {str(n) for n in range(0, count, 2)}

    async def work(pull: PullInput) -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024)
        place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        pull.sources = TargetList(tuple(f"{place}/{n}" for n in range(count)))
        await until(lambda: sum(t["up"] is not None for t in pull.summary()) == count)
        await until(
            lambda: {t["url"].rpartition("/")[2] for t in pull.summary() if t["up"]} == even
        )
        server.close()

    case.run(work)
    assert {peer for peer, _ in case.taken()} == even


def test_targets_are_spread_over_the_interval() -> None:
    urls = [f"http://10.0.{n // 100}.{n % 100}:8700" for n in range(1000)]
    tenths = Counter(
        int(10 * target.phase) for target in TargetList(tuple(urls)).targets().values()
    )
    assert tenths.keys() == set(range(10))
    assert max(tenths.values()) < 200


def states(pull: PullInput) -> list[str]:
    """Of all commands."""
    known = pull.intake.commands
    return [known.get(one["id"]).summary(time.time())["state"] for one in known.to_json()]


def test_commands_reach_the_target_of_their_peer_and_are_answered(tmp_path: Path) -> None:
    """Also after the collector or the peer began anew, and while another target knows nothing."""
    done: list[str] = []

    def obey(server: ReportServer, peers: str, told: dict[str, Any]) -> None:
        """Only `s` stays. What another server's peer is asked is not answered."""
        if told["peer"] in peers:
            done.append(f"{told['peer']} {told['action']}")
            server.answer(told["id"], "it stays" if told["peer"] == "s" else None)

    with ReportServer() as one, ReportServer() as two, ReportServer() as other, ExitStack() as over:
        case = Case(tmp_path, (one.url, two.url, other.url))
        for server, peer in ((one, "a"), (two, "b"), (two, "s"), (other, "c")):
            server.report(report(peer, 0))
        over.enter_context(obeying(one, partial(obey, one, "a")))
        over.enter_context(obeying(two, partial(obey, two, "bs")))

        async def first(pull: PullInput) -> None:
            await until(lambda: sum(target["reports"] for target in pull.summary()) == 4)
            for peer, action in (("a", "leave"), ("b", "leave"), ("s", "leave"), ("a", "join")):
                await pull.intake.queue_command(peer, action, 60.0)
            await until(lambda: "queued" not in states(pull))
            assert states(pull) == ["obeyed", "obeyed", "refused", "obeyed"]
            assert pull.intake.commands.get(3).reason == "it stays"
            # Nothing was given to the target of "c", which obeys nobody.
            assert all(target["deaf"] is None for target in pull.summary()), pull.summary()
            await pull.intake.queue_command("c", "leave", 60.0)
            await until(lambda: any(target["deaf"] for target in pull.summary()))
            assert states(pull)[-1] == "queued"

        case.run(first)
        assert sorted(done) == ["a join", "a leave", "b leave", "s leave"]
        assert [text for text in case.said if other.url in text] == [
            f"{other.url} takes no commands: it answers 403"
        ]
        over.enter_context(obeying(other, partial(obey, other, "c")))

        async def second(pull: PullInput) -> None:
            """It has no reports from which it could know who speaks for whom."""
            await pull.intake.queue_command("b", "join", 60.0)
            await until(lambda: "queued" not in states(pull))

        case.run(second)
    assert sorted(done)[2:] == ["b join", "b leave", "c leave", "s leave"]


def test_command_to_a_target_expires_and_is_answered_shortly_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By clocks that only this test moves."""
    ours, theirs = [time.time()], [0.0]
    monkeypatch.setattr(time, "time", lambda: ours[0])
    monkeypatch.setattr(
        "vizpub.reports.commands.time", SimpleNamespace(monotonic=lambda: theirs[0])
    )
    with ReportServer() as server:
        server.report(report("a", 0))
        assert server.commands() == []
        case = Case(tmp_path, (server.url,))

        async def work(pull: PullInput) -> None:
            await until(lambda: "a" in pull.intake.closing.newest)
            await pull.intake.queue_command("a", "leave", 60.0)
            await until(lambda: bool(server.commands()))
            ours[0] += 60.0 + PERIOD_S
            assert states(pull) == ["expired"]
            # The target counts from when it was given the command, a little later.
            assert len(server.commands()) == 1
            theirs[0] += 60.0
            assert server.commands() == []
            server.answer(1)  # it was obeyed at the last moment
            await until(lambda: states(pull) == ["obeyed"])

        case.run(work)


def test_targets_get_no_commands_unless_they_are_allowed(tmp_path: Path) -> None:
    with ReportServer() as server:
        server.report(report("a", 0))
        assert server.commands() == []
        case = Case(tmp_path, (server.url,), commands=False)

        async def work(pull: PullInput) -> None:
            await until(lambda: "a" in pull.intake.closing.newest)
            await pull.intake.queue_command("a", "leave", 60.0)
            await asyncio.sleep(3 * PERIOD_S)
            assert server.commands() == []

        case.run(work)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "answers 404"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "answers"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"answers": [{"id": 1}]}', "obeyed"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"answers": [{"id": 1, "obeyed": "\xff"}]}', "obeyed"),
        (
            b'HTTP/1.1 200 OK\r\n\r\n{"answers": [{"id": 1, "obeyed": true, "reason": "\xff"}]}',
            "utf-8",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (2**20 + 1), "more than"),
        (b"", "no whole answer"),
    ],
    ids=["404", "no answers", "half an answer", "no bool", "no UTF-8", "too much", "nothing"],
)
def test_wrong_answer_to_commands_is_told_and_reports_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, why: str
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer if asked.startswith(b"POST") else OK + b"\r\n" + LINE)
            if asked.startswith(b"POST") and not answer:
                await reader.read()  # until the other side gives up
            await writer.drain()
        writer.close()

    case = Case(tmp_path, ())
    if not answer:  # but the reports are given in this time
        monkeypatch.setattr("vizpub.collector.inputs.pull._SHARE", 1.0 / PERIOD_S)

    async def work(pull: PullInput) -> None:
        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            pull.sources = TargetList((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",))
            await until(lambda: "a" in pull.intake.closing.newest)
            await pull.intake.queue_command("a", "leave", 60.0)
            await until(lambda: any(target["deaf"] for target in pull.summary()))
            (told,) = pull.summary()
            assert why in told["deaf"]
            assert (told["up"], told["error"]) == (True, None)
            assert states(pull) == ["queued"]

    case.run(work)


def test_answer_to_a_command_that_was_not_given_is_left_out(tmp_path: Path) -> None:
    """A target speaks for its own peers only; what others are asked to do it cannot answer."""
    answer = b'HTTP/1.1 200 OK\r\n\r\n{"answers": [{"id": 1, "obeyed": true}, ' + (
        b'{"id": 2, "obeyed": false, "reason": "' + b"no " * 1000 + b'"}]}'
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer if asked.startswith(b"POST") else OK + b"\r\n" + LINE)
            await writer.drain()
        writer.close()

    case = Case(tmp_path, ())

    async def work(pull: PullInput) -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with ReportServer() as other:
            other.report(report("b", 0))
            pull.sources = TargetList((place, other.url))
            await until(lambda: {bool(target["reports"]) for target in pull.summary()} == {True})
            await pull.intake.queue_command("b", "leave", 60.0)
            await pull.intake.queue_command("a", "leave", 60.0)
            async with server:
                await until(lambda: states(pull)[1] == "refused")
            assert states(pull)[0] == "queued"
            assert len(pull.intake.commands.get(2).reason or "") == 1000

    case.run(work)
