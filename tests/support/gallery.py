"""The pictures of docs/gallery.md, drawn by its commands.

python -m tests.support.gallery [WORKSPACE]        draws them; with a workspace, from its runs
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from typer.testing import CliRunner

from vizpub.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = PAGE.parent / "pictures"
_FIGURE = re.compile(r"```sh\n(vizpub [^`]+)\n```\n\n!\[[^]]+\]\(pictures/gallery-([^)]+)\)")
_RUNS = re.compile(r"^vizpub ((?:ingest|lab simulate) (?:.+\\\n)*.+)$", re.MULTILINE)
_COLOURS, _WIDTH = 128, 720
"""Colours and largest width of a picture."""


@dataclass(frozen=True)
class Drawn:
    """A picture of the page, and the words behind `vizpub` that draw it."""

    words: list[str]
    file: str

    @property
    def path(self) -> Path:
        """The picture in the docs."""
        return PICTURES / f"gallery-{self.file}"


def drawn_in(page: str) -> list[Drawn]:
    """The figures of the page, in their order."""
    return [Drawn(shlex.split(line)[1:], file) for line, file in _FIGURE.findall(page)]


def runs_of(page: str) -> Iterator[list[str]]:
    """The words behind `vizpub` that make the runs of the page."""
    for line in _RUNS.findall(page):
        words = shlex.split(line.replace("\\\n", " "))
        yield [str(ROOT / word) if word.startswith("examples/") else word for word in words]


def _call(*words: str) -> None:
    print(f"vizpub {shlex.join(words)}", flush=True)
    done = CliRunner().invoke(app, words)
    if done.exit_code:
        raise SystemExit(done.stderr)


def _reduce(file: Path) -> None:
    with Image.open(file) as image:
        size = (_WIDTH, round(image.height * _WIDTH / image.width))
        small = image.convert("RGB")
        small = small.resize(size) if image.width > _WIDTH else small
    small.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def draw(workspace: str | None) -> None:
    """Draw all pictures, from the runs of the workspace or new ones."""
    page = PAGE.read_text("utf-8")
    with TemporaryDirectory() as place, chdir(place):
        for words in () if workspace else runs_of(page):
            _call(*words, "--no-load")
        for one in drawn_in(page):
            _call(*(["--workspace", workspace] if workspace else []), *one.words)
            file = Path(one.file)
            if file.suffix == ".png":
                _reduce(file)
            one.path.write_bytes(file.read_bytes())


if __name__ == "__main__":
    draw(str(Path(sys.argv[1]).absolute()) if sys.argv[1:] else None)
