"""Who reads what a collector tells, beside real sockets that fall silent, break and come back."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest
import trustme

from tests.support.bad_collectors import ENDLESS, WRONG, answering
from tests.support.collecting import Served, collector_in, serving
from tests.support.few import few
from tests.support.words import naming, tells
from vizpub.collector.http import client
from vizpub.collector.http.client import (
    GONE,
    PAUSED,
    TOKEN,
    CollectorClient,
    Event,
    collector_of,
    follow_events,
)
from vizpub.collector.place import CollectionPlace
from vizpub.machine.process import birth
from vizpub.model.errors import ServiceError, UseError
from vizpub.reports.endpoint import IS_NO_COLLECTOR, NO_COLLECTOR, NO_URL, NOT_PRINTABLE

NOBODY = 65534

by_root = pytest.mark.skipif(os.geteuid() != 0, reason="to give files to others takes root")

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
STATUS = b'event: status\ndata: {"state": "collecting"}\n\n'


def committed(served: Served, first: int, last: int) -> None:
    rows = [{"interval": interval} for interval in range(first, last + 1)]
    told = {"number": 1, "position": 9, "closed": last, "seconds": 1.0, "late": 0}
    told |= {"left": [0, 0, 0], "control": {}, "rows": rows}
    served.loop.call_soon_threadsafe(served.web.progress.note_commit, told)


def intervals(events: Iterator[Event], count: int) -> list[int]:
    """The next ones; other events are left out."""
    found = (told["interval"] for kind, told in events if kind == "interval")
    return [next(found) for _ in range(count)]


def test_events_go_on_after_the_last_interval_when_the_collector_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_FIRST_WAIT_S", 0.05)
    monkeypatch.setattr(client, "_MOST_WAIT_S", 0.15)
    with serving(collector_in(tmp_path)) as served:
        committed(served, 0, 2)
        url, port = served.url, served.port
        events = follow_events(lambda: CollectorClient(url), lambda: False)
        assert intervals(events, 1) == [2]  # who comes late gets the newest one
        committed(served, 3, 4)
        assert intervals(events, 2) == [3, 4]
    gone = []
    while len(gone) < 4:
        kind, told = next(events)
        if kind == "gone":
            gone.append(told)
    tells(gone[0]["why"], PAUSED)
    assert all(NO_COLLECTOR in told["why"] for told in gone[1:])
    assert [told["wait_s"] for told in gone] == [0.05, 0.1, 0.15, 0.15]
    with serving(collector_in(tmp_path), port) as served:
        committed(served, 0, 6)
        assert intervals(events, 2) == [5, 6]
        served.web.progress.settled = True
    assert [told.get("state") for kind, told in events if kind == "status"][-1] == "ended"


def test_last_rows_come_before_the_end(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        committed(served, 0, 0)
        events = CollectorClient(served.url).events()
        assert intervals(events, 1) == [0]
        served.web.progress.settled = True
        committed(served, 1, 3)
        served.loop.call_soon_threadsafe(served.web.progress.drain)
        found = list(events)
    assert [told["interval"] for kind, told in found if kind == "interval"] == [1, 2, 3]
    assert found[-1][1]["state"] == "ended"


def test_collector_that_is_gone_for_good_ends_with_its_run() -> None:
    with telling(HEAD + STATUS) as url:
        events = follow_events(lambda: CollectorClient(url), lambda: True)
        assert [kind for kind, _ in events] == ["status"]


def test_collector_that_never_answered_is_an_error(tmp_path: Path) -> None:
    with telling(b"") as url:
        pass
    with pytest.raises(ServiceError, match=naming(NO_COLLECTOR, url)):
        next(follow_events(lambda: CollectorClient(url), lambda: False))


@pytest.mark.parametrize(
    "url", ["lab", "localhost:8600", "ftp://host/v1/runs/lab", "http:///v1/runs/lab", "http://host"]
)
def test_url_that_names_no_run_is_refused_with_an_example(tmp_path: Path, url: str) -> None:
    with pytest.raises(UseError, match=naming("http://127.0.0.1:8600/v1/runs/lab")):
        collector_of(CollectionPlace(tmp_path, "lab"), url)


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("127.0.0.1:8600/v1/runs/lab", None),
        ("http://localhost:port/v1/runs/lab", None),
        ("http://[::1/v1/runs/lab", None),
        ("http://localhost:8600/v1/runs/lab", "two\nlines"),
    ],
)
def test_url_or_token_that_is_none_is_an_error(url: str, token: str | None) -> None:
    with pytest.raises(UseError, match=f"{NO_URL}|{NOT_PRINTABLE}"):
        CollectorClient(url, token)


def test_address_for_reports_names_the_run(tmp_path: Path) -> None:
    with serving(collector_in(tmp_path)) as served:
        assert CollectorClient(f"{served.url}/reports").get()["header"]["run"] == "lab"


def test_token_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    no_token = pytest.raises(UseError, match=naming("tokens/admin", "VIZPUB_TOKEN"))
    with socket.create_server(("127.0.0.1", 0)) as door:
        place.announce(url_of(door), tokens=True, certificate=None)
        with no_token:
            collector_of(place)


SECRET = "overheard by nobody"

OVERHEAR = """
import socket, sys
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
while True:
    end, _ = door.accept()
    print(end.recv(1 << 16), flush=True)
    end.sendall(b"HTTP/1.1 204 Heard\\r\\n\\r\\n")
    end.close()
"""


def url_of(door: socket.socket) -> str:
    return f"http://127.0.0.1:{door.getsockname()[1]}/v1/runs/lab"


@contextmanager
def overhearing(place: CollectionPlace) -> Iterator[list[str]]:
    """A process of somebody else, and `endpoint.json` names its port; what it was told."""
    child = subprocess.Popen(
        [sys.executable, "-c", OVERHEAR], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert child.stdout
    told = {"url": f"http://127.0.0.1:{int(child.stdout.readline())}/v1/runs/lab", "tokens": True}
    born = birth(os.getpid())
    assert born
    told |= {"pid": os.getpid(), "boot": born.boot, "ticks": born.ticks}
    (place.folder / "endpoint.json").write_text(json.dumps(told))
    (place.folder / "endpoint.json").chmod(0o600)
    heard: list[str] = []
    try:
        yield heard
    finally:
        child.kill()
        heard += child.communicate()[0].splitlines()


def by_umask(place: CollectionPlace) -> None:
    place.folder.chmod(0o775)


def world_writable(place: CollectionPlace) -> None:
    place.folder.chmod(0o777)


def in_a_writable_folder(place: CollectionPlace) -> None:
    place.folder.parent.chmod(0o777)


def made_beforehand(place: CollectionPlace) -> None:
    """In a sticky folder, as /tmp is."""
    place.workspace.chmod(0o1777)
    os.chown(place.folder, NOBODY, NOBODY)


def file_by_umask(place: CollectionPlace) -> None:
    (place.folder / "endpoint.json").chmod(0o664)


def file_of_another(place: CollectionPlace) -> None:
    os.chown(place.folder / "endpoint.json", NOBODY, NOBODY)


def file_is_a_link(place: CollectionPlace) -> None:
    file = place.folder / "endpoint.json"
    file.rename(place.folder / "elsewhere.json")
    file.symlink_to("elsewhere.json")


def port_of_another(place: CollectionPlace) -> None:
    """The file is sound, but the collector has ended, and somebody else has its port."""


@pytest.mark.parametrize(
    "attack",
    [
        by_umask,
        world_writable,
        in_a_writable_folder,
        pytest.param(made_beforehand, marks=by_root),
        file_by_umask,
        pytest.param(file_of_another, marks=by_root),
        file_is_a_link,
        port_of_another,
    ],
)
def test_token_is_sent_to_the_collector_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Callable[[CollectionPlace], None]
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    place = CollectionPlace(tmp_path / "workspace", "lab")
    place.make()
    with place.hold(), overhearing(place) as heard:
        attack(place)
        with suppress(UseError):
            collector_of(place).get()
    assert heard == []


def test_token_is_sent_to_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    place = CollectionPlace(tmp_path, "lab")
    with serving(collector_in(tmp_path)) as served:
        place.announce(served.url, tokens=True, certificate=None)
        found = collector_of(place)
        assert (found.url, found.token) == (served.url, SECRET)
        assert found.get()["header"]["run"] == "lab"


@pytest.mark.parametrize(
    "text", [b"<html>welcome</html>", b"[7]", b'"x"', b'{"status": "ok"}', b"{", b"\xff"]
)
def test_answer_of_something_else_is_an_error(text: bytes) -> None:
    length = b"content-length: %d\r\n\r\n" % len(text)
    no_collector = pytest.raises(ServiceError, match=IS_NO_COLLECTOR)
    with telling(b"HTTP/1.1 200 OK\r\n" + length + text) as url, no_collector:
        CollectorClient(url).get()
    refusal = pytest.raises(UseError, match="500")
    with telling(b"HTTP/1.1 500 Oh\r\n" + length + text) as url, refusal:
        CollectorClient(url).get()


def issued(folder: Path, *, text: str = "") -> ssl.SSLContext:
    """The context of a server with a certificate of an authority that nobody knows, for another
    host; it is in the folder, behind a text.
    """
    made = trustme.CA().issue_cert("collector.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.configure_cert(context)
    (folder / "cert.pem").write_text(text + made.cert_chain_pems[0].bytes().decode())
    return context


def test_certificate_of_a_workspace_is_trusted_itself(tmp_path: Path) -> None:
    """A collector for others listens at 0.0.0.0, which no certificate names."""
    body = b'{"header": {}, "progress": {}}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    file = str(tmp_path / "cert.pem")
    own = issued(tmp_path, text="subject=collector.example\n")
    with telling(answer, context=own) as url:
        assert CollectorClient(url, None, file).get()["progress"] == {}
    issued(tmp_path)
    refusal = pytest.raises(ServiceError, match="certificate verify failed")
    with telling(answer, context=own) as url, refusal:
        CollectorClient(url, None, file).get()
    for text in ("nothing", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", "\xff"):
        (tmp_path / "cert.pem").write_text(text)
        with pytest.raises(UseError, match=naming("cert.pem")):
            CollectorClient("https://127.0.0.1:1/v1/runs/lab", None, file).get()
    (tmp_path / "cert.pem").unlink()
    with pytest.raises(UseError, match="No such file"):
        CollectorClient("https://127.0.0.1:1/v1/runs/lab", None, file).get()


@contextmanager
def telling(
    text: bytes, *, silent: bool = False, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """A collector that tells this, and then nothing, or ends the connection."""
    over = threading.Event()
    with socket.create_server(("0.0.0.0" if context else "127.0.0.1", 0)) as door:

        def work() -> None:
            with suppress(OSError):  # nobody came
                connection, _ = door.accept()
                if context:
                    connection = context.wrap_socket(connection, server_side=True)
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(text)
                    if silent:
                        over.wait(60)

        threading.Thread(target=work, daemon=True).start()
        host, port = door.getsockname()
        yield f"{'https' if context else 'http'}://{host}:{port}/v1/runs/lab"
        over.set()


@pytest.mark.parametrize(
    ("text", "silent", "why"),
    [
        (HEAD + STATUS, True, "0.3 s"),
        (HEAD + STATUS + b"event: interval\nda", True, "0.3 s"),
        (HEAD + STATUS, False, GONE),
        (HEAD + STATUS + b'event: interval\ndata: {"interval": 4}', False, GONE),
        (HEAD[:-2] + b"transfer-encoding: chunked\r\n\r\n99\r\n" + STATUS, False, GONE),
    ],
    ids=["silent", "silent in a line", "closed", "half a line", "half a chunk"],
)
def test_collector_that_breaks_off_is_an_error(
    monkeypatch: pytest.MonkeyPatch, text: bytes, silent: bool, why: str
) -> None:
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.3)
    with telling(text, silent=silent) as url:
        events = CollectorClient(url).events()
        assert next(events) == ("status", {"state": "collecting"})
        with pytest.raises(ServiceError, match=why):
            next(events)


ASKED: dict[str, Callable[[CollectorClient], object]] = {
    "get": CollectorClient.get,
    "tell": lambda collector: collector.tell("17", "leave", 60),
    "events": lambda collector: list(collector.events()),
}


@pytest.mark.parametrize(
    ("answer", "ask"),
    few(
        product(ENDLESS, ASKED),
        [*((answer, "get") for answer in ENDLESS), *(([*ENDLESS][-1], ask) for ask in ASKED)],
    ),
)
def test_answer_that_never_ends_is_read_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, answer: str, ask: str
) -> None:
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.3)
    monkeypatch.setattr(client, "_MOST", 1 << 16)
    with answering(ENDLESS[answer]) as badly, pytest.raises((ServiceError, UseError)):
        ASKED[ask](CollectorClient(badly.url))
    assert sum(badly.sent) < 1 << 24  # most of it waited in buffers of the system


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("answer", WRONG)
def test_answer_that_no_collector_gives_is_an_error(answer: str, ask: str) -> None:
    with answering(WRONG[answer]) as badly, pytest.raises((ServiceError, UseError)):
        ASKED[ask](CollectorClient(badly.url))
