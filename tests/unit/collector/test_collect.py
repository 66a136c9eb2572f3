"""What the intake's process imports, and what its command refuses."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest
import trustme
import uvicorn
from starlette.applications import Starlette
from typer.testing import CliRunner

from tests.support.collected import until
from tests.support.reserved import Reserved
from tests.support.words import naming, tells
from vizpub.cli.main import app
from vizpub.collector.closing import ClosingRules
from vizpub.collector.collect import (
    AS_BEFORE,
    NOTHING_REPORTED,
    PAUSING,
    Collector,
    collect,
)
from vizpub.collector.http.client import collector_of
from vizpub.collector.http.listener import listen_at
from vizpub.collector.intake import IntakeLimits
from vizpub.collector.making.batch import Batch
from vizpub.collector.making.batches import BatchJob
from vizpub.collector.making.maker import RunMaker
from vizpub.collector.place import CollectionPlace
from vizpub.collector.request import CollectRequest, ListenOptions
from vizpub.collector.reservation import NOT_OURS, reserve
from vizpub.machine.locks import SWEPT_S
from vizpub.model.errors import RunLocked, UseError
from vizpub.runstore.archive import export_run, import_run
from vizpub.runstore.manifest import Manifest, write_manifest
from vizpub.runstore.store import open_run, runs

ROOT = Path(__file__).parents[3]
REPLICATED = ["--kafka", "127.0.0.1:1", "--topic", "reports", "--replicated"]


@pytest.mark.parametrize("package", ["pyspark", "confluent_kafka"])
def test_intake_imports_no_spark_and_no_client_of_kafka(package: str) -> None:
    code = f"import vizpub.collector.collect, sys; sys.exit('{package}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "--certificate and --key"),
        (["--host", "0.0.0.0", "--no-token"], "this machine only"),
        (["--key", "k.pem"], "belong together"),
        (["--topic", "reports"], "--kafka and --topic belong together"),
        (["--kafka", "127.0.0.1:9092"], "--kafka and --topic belong together"),
        (
            ["--kafka", "x:1", "--topic", "r", "--kafka-config", "none.properties"],
            "none.properties",
        ),
        (["--replicated"], "needs --kafka and --topic"),
        ([*REPLICATED, "--pull", "http://127.0.0.1:1"], "without --watch, --pull"),
        ([*REPLICATED, "--allow-commands"], "and --allow-commands"),
        (["--peers", "nowhere.txt"], "nowhere.txt"),
        (["--fields", "topics,neigbors"], "did you mean neighbors?"),
        (["--stop"], "nothing is collected"),
        (["--reserve", "999999999GB"], "are free"),
    ],
)
def test_collect_refuses_what_is_unsafe_or_senseless(
    tmp_path: Path, options: list[str], why: str
) -> None:
    command = ["--workspace", str(tmp_path), "live", "collect", "lab", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())


def refused(folder: Path, *options: str) -> str:
    command = ["--workspace", str(folder), "live", "collect", "lab", "--no-load", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    return " ".join(done.output.split())


def issued(folder: Path, authority: trustme.CA, *, key: bool = True) -> tuple[str, ...]:
    """Options with a certificate and its key in the folder; without the new key, the old one."""
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    if key:
        made.private_key_pem.write_to_path(folder / "key.pem")
        (folder / "key.pem").chmod(0o600)
    return "--certificate", str(folder / "cert.pem"), "--key", str(folder / "key.pem")


def test_run_of_another_source_is_not_collected(tmp_path: Path) -> None:
    folder = tmp_path / "runs/lab"
    folder.mkdir(parents=True)
    write_manifest(folder, Manifest("lab", "edges", (), {}))
    tells(refused(tmp_path, "--no-token", "--reserve", "1"), "run 'lab'", NOT_OURS)


def test_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    missing = "--certificate", str(tmp_path / "none.pem"), "--key", str(tmp_path / "none.key")
    assert "none.key cannot be used: No such file" in refused(tmp_path, *missing)
    files = issued(tmp_path, trustme.CA())
    issued(tmp_path, trustme.CA(), key=False)
    assert "key.pem cannot be used: [X509: KEY_VALUES_MISMATCH]" in refused(tmp_path, *files)


def test_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    files = issued(tmp_path, trustme.CA())
    for mode in (0o640, 0o644, 0o660):
        (tmp_path / "key.pem").chmod(mode)
        assert f"chmod 600 {tmp_path / 'key.pem'}" in refused(tmp_path, *files)
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    both.chmod(0o644)
    assert f"chmod 600 {both}" in refused(tmp_path, "--certificate", str(both), "--key", str(both))


def test_reason_why_nothing_can_listen_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = str(door.getsockname()[1])
        assert "already in use" in refused(tmp_path, "--no-token", "--port", port)
    assert runs(tmp_path) == []  # nothing was reported, so the name is free
    foreign = "--host", "192.0.2.1", *issued(tmp_path, trustme.CA())
    assert "Cannot assign requested address" in refused(tmp_path, *foreign)


def test_address_of_ipv6_for_all_takes_ipv4_too() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with listen_at("::", 0) as door:
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, door.getsockname()[1]), 20).close()


def test_port_stays_where_a_collector_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reporters know no other one."""

    class Paused(RunMaker):
        async def run(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    monkeypatch.setattr("vizpub.collector.collect.RunMaker", Paused)
    place, told = CollectionPlace(tmp_path, "lab"), list[str]()

    def port() -> int:
        collect(CollectRequest(place, limits=IntakeLimits(reserve=1)), told.append)
        return int(place.listener().url.split(":")[2].partition("/")[0])

    first = port()
    assert [port(), port()] == [first, first]
    with socket.create_server(("127.0.0.1", first)):
        assert port() != first


def test_pair_that_is_read_again_in_halves_changes_nothing(tmp_path: Path) -> None:
    """As where a certificate is renewed, and its key comes a moment later."""
    said: list[str] = []
    old, new = trustme.CA(), trustme.CA()
    issued(tmp_path, old)
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    listening = ListenOptions(certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    collector = Collector(CollectRequest(place, listening=listening), said.append)
    config = uvicorn.Config(
        Starlette(), ssl_certfile=listening.certificate, ssl_keyfile=listening.key
    )
    config.load()
    assert shown_by(config, old)
    issued(tmp_path, new, key=False)
    collector._reload(config, None)
    tells(said[-1], AS_BEFORE)
    assert shown_by(config, old)
    issued(tmp_path, new)
    collector._reload(config, None)
    assert shown_by(config, new)


def shown_by(config: uvicorn.Config, authority: trustme.CA) -> bool:
    """Whether a connection gets a certificate of this authority."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    here, there = socket.socketpair()
    here.settimeout(20)

    def serve() -> None:
        assert config.ssl
        with there, config.ssl.wrap_socket(there, server_side=True) as served:
            served.recv(1)

    thread = Thread(target=serve)
    thread.start()
    try:
        with here, trusting.wrap_socket(here, server_hostname="127.0.0.1") as shown:
            shown.sendall(b"x")
        return True
    except ssl.SSLError:
        return False
    finally:
        thread.join()


def test_open_connections_stay_while_the_certificate_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, old, new = CollectionPlace(tmp_path, "lab"), trustme.CA(), trustme.CA()
    issued(tmp_path, old)
    answers, said = list[int](), list[str]()

    def connect(authority: trustme.CA) -> http.client.HTTPSConnection:
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        return http.client.HTTPSConnection("127.0.0.1", place.port(), timeout=20, context=trusting)

    def ask(connection: http.client.HTTPSConnection, *, stays: bool = False) -> None:
        token = (place.tokens / "read").read_text().strip()
        try:
            connection.request("GET", "/v1/runs/lab", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            answers.append(answer.status)
        finally:
            if not stays:
                connection.close()

    def rotate() -> None:
        until(lambda: place.listener() is not None)
        ask(older := connect(old), stays=True)
        connected, _ = older.sock, issued(tmp_path, new)
        os.kill(os.getpid(), signal.SIGHUP)

        def is_new() -> bool:
            try:
                ask(connect(new))
            except ssl.SSLError:
                return False
            return True

        until(is_new)
        ask(older, stays=True)
        assert older.sock is connected
        older.close()
        with pytest.raises(ssl.SSLError):
            ask(connect(old))

    class Rotated(RunMaker):
        async def run(self) -> None:
            await asyncio.to_thread(rotate)
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    monkeypatch.setattr("vizpub.collector.collect.RunMaker", Rotated)
    listening = ListenOptions(certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    limits = IntakeLimits(reserve=1)
    assert not collect(CollectRequest(place, limits=limits, listening=listening), said.append)
    assert answers == [200, 200, 200]
    tells("\n".join(said), place.tokens, "report", "read", "admin")


def test_run_is_ended_with_the_options_it_was_collected_with(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    what = CollectRequest(
        place,
        interval_us=250_000,
        rules=ClosingRules(gap_tolerance=2),
        message_window=7,
        betweenness=False,
    )
    first = Collector(what, print)
    asyncio.run(first._intake.take([json.dumps(what.header().to_json()).encode()]))
    with pytest.raises(UseError, match="--interval"):
        Collector(CollectRequest(place), print)
    end = CollectRequest(place, stop=True)
    Collector(end, print)
    assert end.job == what.job
    assert BatchJob(**end.job).gap_tolerance == 2


@pytest.mark.parametrize("began", [False, True])
def test_collection_stays_replicated_or_not(tmp_path: Path, *, began: bool) -> None:
    """Else one collector would have reports that the others lack, and nobody would know."""
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    request = CollectRequest(place, replicated=began)  # without a topic, it asks nobody
    first = Collector(request, print)
    asyncio.run(first._intake.take([json.dumps(request.header().to_json()).encode()]))
    Collector(request, print)
    with pytest.raises(UseError, match=f"with{'' if began else 'out'} --replicated"):
        Collector(CollectRequest(place, replicated=not began), print)
    end = CollectRequest(place, stop=True)
    Collector(end, print)
    assert BatchJob(**end.job)


def test_restored_collection_resumes_where_the_log_ended(tmp_path: Path) -> None:
    case = Reserved(tmp_path / "ws")
    case.append()
    request = CollectRequest(CollectionPlace(tmp_path / "ws", "lab"))
    lines = [
        json.dumps(
            {"format": "vizpub.report/1", "peer": peer, "interval": 0, "neighbors": []}
        ).encode()
        for peer in "abc"
    ]
    first = Collector(request, print)
    asyncio.run(first._intake.take([json.dumps(request.header().to_json()).encode(), *lines]))
    export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar", with_log=True)
    import_run(tmp_path / "lab.tar", tmp_path / "other")
    place = CollectionPlace(tmp_path / "other", "lab")
    reserve(place)  # it owns its name, as before
    second = Collector(CollectRequest(place), print)
    assert second._intake.log.end == first._intake.log.end
    assert second._intake.header == first._intake.header
    assert asyncio.run(second._intake.take(lines)).accepted == 3


def test_end_of_what_nobody_reported_to_leaves_the_name_free(tmp_path: Path) -> None:
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    for _ in range(2):
        assert collect(
            CollectRequest(place, limits=IntakeLimits(reserve=1), stop=True), said.append
        )
        assert runs(tmp_path) == []
    assert said == 2 * [NOTHING_REPORTED]


def test_end_of_nothing_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Settled(RunMaker):
        async def run(self) -> None:
            self._handle_answer({"settled": True, "late": 0})

    monkeypatch.setattr("vizpub.collector.collect.RunMaker", Settled)
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    load = sys.executable, "-c", "raise SystemExit('no run')"
    asyncio.run(Collector(CollectRequest(place, stop=True, load=load), said.append).run())
    assert said == [NOTHING_REPORTED]


@pytest.mark.parametrize("is_closed", [True, False])
def test_pause_says_that_an_append_ends_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool
) -> None:
    class Paused(RunMaker):
        async def run(self) -> None:
            if is_closed:
                await self._intake._close(0)
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    monkeypatch.setattr("vizpub.collector.collect.RunMaker", Paused)
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    asyncio.run(Collector(CollectRequest(place), said.append).run())
    assert (PAUSING in said) == is_closed


@pytest.mark.parametrize("gone", ["log", "all"])
def test_log_that_is_behind_the_run_is_refused(tmp_path: Path, gone: str) -> None:
    """What it gets would have positions that the run has already, and never be appended."""
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    collection = place.identify()
    batch = place.batches / Batch(1, 1000, 4).name
    batch.touch()
    run = tmp_path / "runs" / "lab"
    run.mkdir(parents=True)
    listed = {"path": str(batch), "encoding": "", "size": 0, "sha256": "", "damage": None}
    made = Manifest("lab", "reports", (listed,), {}, state="complete", collection=collection)
    write_manifest(run, made)
    if gone == "all":
        shutil.rmtree(place.folder)
        place.make()
    for stop in (False, True):
        why = ("0", "1,000") if gone == "log" else (NOT_OURS,)
        with pytest.raises(UseError, match=naming("'lab'", *why)):
            collect(CollectRequest(place, limits=IntakeLimits(reserve=1), stop=stop), print)


def test_files_of_another_user_are_told_as_that(tmp_path: Path) -> None:
    place = CollectionPlace(tmp_path, "lab")
    place.make()
    (place.folder / ".collect.lock").mkdir()  # as closed to root, too, as another user's is to us
    with pytest.raises(UseError, match=naming(".collect.lock")), place.hold():
        pass
    with pytest.raises(UseError, match=naming(".collect.lock")):
        place.is_held()
    (tmp_path / "file").touch()
    with pytest.raises(UseError, match="Not a directory"):
        CollectionPlace(tmp_path / "file", "lab").make()


def test_signal_ends_the_wait_for_the_last_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a Neo4j that does not answer; nothing is left to append."""

    class Settled(RunMaker):
        async def run(self) -> None:
            self._progress.batches, self._progress.settled = 1, True
            self._committed()

    monkeypatch.setattr("vizpub.collector.collect.RunMaker", Settled)
    monkeypatch.setattr("vizpub.collector.making.loading._END_S", 0.1)
    place, said = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    load = sys.executable, "-c", "import time; time.sleep(600)"

    async def work() -> None:
        collector = Collector(CollectRequest(place, stop=True, load=load), said.append)
        running = asyncio.create_task(collector.run())
        while collector._loading._process is None:
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        async with asyncio.timeout(60):
            await running

    asyncio.run(work())
    (told,) = said
    tells(told, "Neo4j", "interrupted", "vizpub neo4j load lab")


def test_address_of_an_earlier_collector_is_told_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever listens there now would get the token of who asks."""
    place, found = CollectionPlace(tmp_path, "lab"), list[str]()
    place.make()
    place.announce(url="http://127.0.0.1:1/v1/runs/lab", tokens=True, certificate=None)

    async def run(_: Collector) -> None:
        with pytest.raises(UseError, match=naming("'lab'", "vizpub live collect lab")) as caught:
            collector_of(place)
        found.append(str(caught.value))

    monkeypatch.setattr(Collector, "run", run)
    assert not collect(CollectRequest(place, limits=IntakeLimits(reserve=1)), print)
    assert found


def test_collector_starts_though_others_look_whether_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `vizpub live watch` does again and again while it waits for one."""
    monkeypatch.setattr("vizpub.runstore.collection.SWEPT_S", SWEPT_S)
    place, over = CollectionPlace(tmp_path, "lab"), Event()
    place.make()

    def look() -> None:
        while not over.is_set():
            place.is_held()

    thread = Thread(target=look)
    thread.start()
    try:
        for _ in range(100):
            with place.hold():
                assert place.is_held()
    finally:
        over.set()
        thread.join()
    with place.hold(), pytest.raises(RunLocked), CollectionPlace(tmp_path, "lab").hold():
        pass
