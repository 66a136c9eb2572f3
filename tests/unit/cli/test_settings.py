"""How far long work is, on stderr."""

from __future__ import annotations

import pytest

from vizpub.cli.settings import Settings, progress_bar


def work(settings: Settings) -> None:
    with settings.progress() as progress:
        for done in range(3):
            progress("read \x1b[2J", done, 2)
        progress("write", 0, 0)


def test_progress_without_a_terminal_prints_a_line_per_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    work(Settings())
    assert capsys.readouterr() == ("", "read \\x1b[2J\nwrite\n")


def test_progress_is_silent_with_the_quiet_option(capsys: pytest.CaptureFixture[str]) -> None:
    work(Settings(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_progress_bar_is_drawn_on_stderr_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as progress:
        progress("read", 1, 4)
        progress("write", 0, 0)
        progress("write", 3, 0)
    out, err = capsys.readouterr()
    assert out == ""
    assert "read" in err
    assert "25%" in err
    assert left_on_screen(err) == ""


def left_on_screen(err: str) -> str:
    """What comes after the last line that was erased."""
    _, erase, left = err.rpartition("\x1b[2K")
    assert erase
    return left.strip()


def test_error_during_progress_is_passed_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    def fail() -> None:
        with progress_bar() as progress:
            progress("read", 0, 1)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    err = capsys.readouterr().err
    assert "read" in err
    assert left_on_screen(err) == ""
