"""Films: what ffmpeg does or fails to do, and what an unfinished film leaves behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from matplotlib.figure import Figure

from vizpub.analytics.figures.films import FILM_FORMATS, NO_FFMPEG, Film, write_film
from vizpub.model.errors import UseError


def figures(count: int) -> Iterator[Figure]:
    for number in range(count):
        figure = Figure()
        figure.subplots().plot([0, number], [number, 0])
        yield figure


@pytest.mark.parametrize("form", FILM_FORMATS)
def test_same_figures_give_the_same_film(form: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_film(figures(3), tmp_path / name, Film(form, width=160, height=120))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("form", FILM_FORMATS)
def test_interrupted_film_raises_and_leaves_no_process(form: str, tmp_path: Path) -> None:
    def interrupted() -> Iterator[Figure]:
        yield from figures(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(interrupted(), tmp_path / "film", Film(form, width=160, height=120))
    assert [child for child in psutil.Process().children() if "ffmpeg" in child.name()] == []


def test_missing_ffmpeg_is_said_before_the_film_is_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    left = figures(3)
    with pytest.raises(UseError) as raised:
        write_film(left, tmp_path / "film.mp4", Film("mp4"))
    assert NO_FFMPEG in str(raised.value)
    assert "pip install 'vizpub[video]'" in str(raised.value)
    assert len(list(left)) == 3


def test_failure_of_ffmpeg_is_told_in_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho 'Unknown encoder' >&2\nexit 1\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UseError) as raised:
        write_film(figures(50), tmp_path / "film.webm", Film("webm", width=160, height=120))
    assert "Unknown encoder" in str(raised.value)
