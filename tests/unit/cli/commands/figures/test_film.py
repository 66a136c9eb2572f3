"""Films of `vizpub plot`, decoded again by Pillow and ffmpeg."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image, ImageSequence
from scipy.ndimage import label
from typer.testing import CliRunner, Result

from tests.support.few import few
from tests.support.words import tells
from vizpub.analytics.figures.films import find_ffmpeg
from vizpub.analytics.figures.styles import GREY
from vizpub.cli.main import app

Call = Callable[..., Result]
SMALL = ("--size", "320x240")


@pytest.fixture
def call(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("VIZPUB_CACHE", str(workspace / "cache"))

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), "plot", "monday", *words])

    return run


def frames(file: Path) -> int:
    """The number of frames in a film."""
    if file.suffix == ".gif":
        with Image.open(file) as image:
            return sum(1 for _ in ImageSequence.Iterator(image))
    program = find_ffmpeg(file.suffix)
    decode = [program, "-i", str(file), "-map", "0:v", "-f", "null", "-"]
    output = subprocess.run(decode, capture_output=True, text=True, check=True).stderr
    return int(re.findall(r"frame=\s*(\d+)", output)[-1])


@pytest.mark.parametrize("form", few(["gif", "webm", "mp4"], ["gif", "webm"]))
@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("--kind overlay", 4),
        ("--kind overlay --from 1 --to 2 --topic news", 2),
        ("--kind overlay --fps 3 --seconds 2.5 --layers mesh --layout ring", 8),
        ("m0 --kind tree", 4),  # three hops, and all copies
        ("m0 --kind tree --layout layers --fps 5 --seconds 0.9", 5),
        ("--kind tree --topic news", 6),  # the second message reaches nobody
    ],
)
def test_frames_are_those_of_intervals_hops_or_equal_times(
    call: Call, tmp_path: Path, form: str, words: str, count: int
) -> None:
    file = tmp_path / f"film.{form}"
    result = call(*words.split(), *SMALL, "-o", str(file))
    assert result.exit_code == 0, result.output
    tells(result.stderr, file, count)
    assert frames(file) == count


def test_frames_of_an_overlay_show_who_is_there(call: Call, tmp_path: Path) -> None:
    """Dave leaves after two of four seconds."""
    file = tmp_path / "film.gif"
    assert call("--kind", "overlay", "--layout", "ring", "-o", str(file)).exit_code == 0
    colour = np.array(to_rgb(GREY)) * 255
    dots = []
    with Image.open(file) as image:
        for frame in ImageSequence.Iterator(image):
            pixels = np.asarray(frame.convert("RGB"))[:660]  # above the legend
            areas, _ = label(np.abs(pixels - colour).max(axis=2) < 12)
            dots.append(int((np.bincount(areas.ravel())[1:] > 40).sum()))
    assert dots == [4, 4, 3, 3]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("--kind series diameter -o x.gif", ["overlay", "tree", "series"]),
        ("--kind overlay --at 3 -o x.gif", ["--at", "overlay"]),
        ("--kind overlay m0 -o x.gif", ["MESSAGE", "overlay"]),
        ("--kind tree m0 --from 1 -o x.mp4", ["--from", "tree"]),
        ("--kind tree m0 --hops 1 -o x.mp4", ["--hops", "tree"]),
        ("--kind tree -o x.webm", ["--topic"]),
        ("--kind tree m0 --topic news -o x.webm", ["--topic"]),
        ("--kind tree --topic sport/日本 -o x.gif", ["sport/日本"]),
        ("--kind tree nobody -o x.gif", ["nobody", "m0", "m1"]),
        ("--kind overlay --from 9 -o x.gif", ["9", "0 to 3"]),
        ("--kind overlay --size 99 -o x.gif", ["99", "1280x720"]),
        ("--kind overlay --seconds 3000 -o x.gif", ["24,000", "2,000", ".gif"]),
        ("--kind overlay --fps 3 -o x.png", ["--fps", "film of an overlay"]),
        ("--kind overlay -o x.avi", ["x.avi", ".gif", ".png"]),
    ],
)
def test_film_that_cannot_be_is_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, facts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(*words.split())
    assert result.exit_code == 2, result.output
    tells(result.stderr, *facts)
    assert not list(tmp_path.glob("x.*"))
