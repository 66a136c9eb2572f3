from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from cli.notes import show_notes
from cli.settings import Settings


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    logger = logging.getLogger("ingest")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before


def noted(settings: Settings, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_notes(settings)
    log = logging.getLogger("ingest.somewhere")
    log.warning("it is not used: %s", "it is ending\x1b[2J")
    log.info("it would not be used")
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_warning_is_shown_once_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert noted(Settings(), capsys) == ["it is not used: it is ending\\x1b[2J"]


def test_debug_option_shows_info_messages_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert noted(Settings(debug=True), capsys)[1:] == ["it would not be used"]


def test_quiet_option_shows_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert noted(Settings(quiet=True), capsys) == []
