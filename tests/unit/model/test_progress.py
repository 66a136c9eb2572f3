"""Words about long waits: nothing of a short one, and of a long one what and how long."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from filelock import FileLock

from tests.support.words import tells
from vizpub.cli.main import _show_log
from vizpub.cli.settings import Settings
from vizpub.machine.locks import hold_file_lock
from vizpub.model import progress
from vizpub.model.progress import WAITS, announce_wait

_SOON_S = 60


@pytest.fixture
def records() -> Iterator[Queue[str]]:
    """What is logged of waits."""
    queue: Queue[str] = Queue()
    logger = logging.getLogger(WAITS)
    handler = logging.Handler()
    handler.emit = lambda record: queue.put(record.getMessage())  # type: ignore[method-assign]
    handlers, level = logger.handlers, logger.level
    logger.handlers, logger.level = [handler], logging.INFO
    yield queue
    logger.handlers, logger.level = handlers, level


def test_long_wait_is_announced_with_its_limit(
    records: Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    with announce_wait("the master", 60):
        tells(records.get(timeout=_SOON_S), "the master", "60 s")
    with announce_wait("executors"):
        tells(records.get(timeout=_SOON_S), "executors", "Ctrl-C")


def test_short_wait_is_not_announced(records: Queue[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 3600)
    with announce_wait("the master", 60):
        pass
    with pytest.raises(KeyError), announce_wait("the master", 60):
        raise KeyError
    assert records.empty()


def test_lock_of_another_is_announced_until_it_is_free(
    records: Queue[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    held: Queue[bool] = Queue()

    def wait() -> None:
        with hold_file_lock(tmp_path / "lock", "starts Neo4j"):
            held.put(True)

    waiting = Thread(target=wait)
    with FileLock(tmp_path / "lock"):
        waiting.start()
        tells(records.get(timeout=_SOON_S), "starts Neo4j")
        assert held.empty()
    assert held.get(timeout=_SOON_S)
    waiting.join()


def test_waits_are_messages_of_commands_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger(WAITS)
    for quiet in (False, True):
        _show_log(Settings(quiet=quiet))
        logger.info("waiting for %s", "the master")
        assert ("the master" in capsys.readouterr().err) is not quiet
