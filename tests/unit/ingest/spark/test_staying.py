from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from tests.support.words import naming
from tests.unit.ingest.spark.test_doorway import answering, listener
from vizpub.ingest.spark import doorway, staying
from vizpub.ingest.spark.staying import (
    ENDING,
    SessionNotUsable,
    differing_names,
    folder_of,
    lease_session,
    session_status,
    start_session,
    stop_session,
)
from vizpub.machine.private import make_private
from vizpub.model.errors import UseError


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    scratch = tmp_path / "workspace" / ".spark"
    make_private(folder_of(scratch))
    return scratch


def fit_now() -> Mapping[str, str]:
    staying.session_requirements.cache_clear()
    try:
        return staying.session_requirements()
    finally:
        staying.session_requirements.cache_clear()


class TestWhatHasToFit:
    @pytest.mark.parametrize("name", ["VIZPUB_SPARK_MEMORY", "JAVA_HOME", "PYTHONHASHSEED", "TZ"])
    def test_environment_variable_is_named_when_it_changes(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(name, "one")
        before = fit_now()
        monkeypatch.setenv(name, "another")
        assert differing_names(before, fit_now()) == [f"${name}"]
        monkeypatch.delenv(name)
        assert differing_names(before, fit_now()) == [f"${name}"]

    def test_terminal_variables_are_ignored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = fit_now()
        for name in ("PWD", "COLUMNS", "SHLVL", "VIZPUB_WORKSPACE"):
            monkeypatch.setenv(name, "another")
        assert differing_names(before, fit_now()) == []

    def test_variable_values_are_not_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
        told = fit_now()
        assert "$AWS_SECRET_ACCESS_KEY" in told
        assert "wJalrXUtnFEMI" not in str(told)

    def test_java_on_the_path_is_named_when_it_changes(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        before = fit_now()
        java = tmp_path / "java"
        java.write_text("#!/bin/sh\n")
        java.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert shutil.which("java") == str(java)
        assert differing_names(before, fit_now()) == ["Java"]

    def test_umask_is_named_when_it_changes(self) -> None:
        before = fit_now()
        mask = os.umask(0o077)
        try:
            os.umask(mask ^ 0o010)
            assert differing_names(before, fit_now()) == ["umask"]
        finally:
            os.umask(mask)


class TestASessionThatHangs:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doorway, "ANSWER_S", 0.2)
        monkeypatch.setattr(staying, "_STOP_S", 0.2)

    def test_lease_of_a_hanging_session_is_refused(self, scratch: Path) -> None:
        with (
            listener(folder_of(scratch)),
            pytest.raises(SessionNotUsable, match="vizpub session stop"),
        ):
            lease_session(scratch)

    @pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the kernel does not tell")
    def test_hanging_session_is_named_by_its_process_and_ended(self, scratch: Path) -> None:
        with listener(folder_of(scratch)) as child:
            assert (session_status(scratch).state, session_status(scratch).pid) == (
                "not answering",
                child.pid,
            )
            assert stop_session(scratch).pid == child.pid
            assert child.wait() < 0
        assert session_status(scratch).state == "absent"


def test_dead_session_is_absent_and_stop_ends_no_process(scratch: Path) -> None:
    with listener(folder_of(scratch)) as child:
        child.kill()
        child.wait()
    bystanders = {process.pid for process in psutil.Process().children()}
    assert session_status(scratch).state == "absent"
    assert lease_session(scratch) is None
    assert stop_session(scratch).state == "absent"
    assert {process.pid for process in psutil.Process().children()} == bystanders


def test_workspace_without_session_stays_unchanged(tmp_path: Path) -> None:
    scratch = tmp_path / "workspace" / ".spark"
    assert session_status(scratch).state == "absent"
    assert lease_session(scratch) is None
    assert stop_session(scratch).state == "absent"
    assert not scratch.exists()


def test_lease_of_an_ending_session_is_refused(scratch: Path) -> None:
    thread = answering(folder_of(scratch), lambda end: None)
    with pytest.raises(SessionNotUsable, match=ENDING):
        lease_session(scratch)
    thread.join()


def test_refused_lease_tells_the_reason(scratch: Path) -> None:
    def refuse(end: socket.socket) -> None:
        doorway.receive(end)
        doorway.send(end, {"refused": "process 4711 uses it"})

    thread = answering(folder_of(scratch), refuse)
    with pytest.raises(SessionNotUsable, match="process 4711"):
        lease_session(scratch)
    thread.join()


@pytest.mark.parametrize("name", ["SPARK_MASTER", "SPARK_HOME", "SPARK_CONF_DIR"])
def test_start_is_refused_when_spark_is_configured_elsewhere(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "somewhere")
    with pytest.raises(UseError, match=name):
        start_session(scratch)


def test_session_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UseError, match=naming(tmp_path / "file", "Not a directory")):
        start_session(tmp_path / "file" / ".spark", 60)


def test_session_folder_open_to_other_users_is_refused(scratch: Path) -> None:
    folder_of(scratch).chmod(0o777)
    for act in (start_session, stop_session, session_status, lease_session):
        with pytest.raises(UseError, match=naming(f"chmod 700 {folder_of(scratch)}")):
            act(scratch)
