"""The pictures of the docs that commands of their pages draw.

    make pictures        draws them, in some minutes

Each PNG says which command drew it, so a test sees where the page has another one by now.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from typer.testing import CliRunner

from vizpub.cli.main import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "gallery.md"
PAGES = (
    PAGE,
    *(DOCS / f"{name}.md" for name in ("figures", "compare")),
    *(DOCS / "recipes" / f"{name}.md" for name in ("delays", "deploy")),
)
PICTURES = DOCS / "pictures"
OF_PAGES = {"browser", "explorer", "message"}
"""First words of pictures that tests and people take in a web browser."""
OF_EXPERIMENTS = {"channels-gdfr.png", "dissemination-figure-4-13.png", "gossip-cascades.png"} | {
    f"gossip-figure-{number}.png" for number in (1, 4)
}
"""Figures of the reports that docs/results and a recipe quote."""
DRAWN_BY = "Description"
"""The text of a PNG that has its command."""
_FENCED = re.compile(r"```sh\n(.+?)```|\]\((?:\.\./)?pictures/([^)]+)\)", re.DOTALL)
_COMMAND = re.compile(r"^vizpub ((?:.+\\\n)*.+)$", re.MULTILINE)
_TRACE = ["ingest", str(ROOT / "examples" / "gossipsub"), "--run", "gossipsub"]
_COLOURS, _WIDTH = 128, 720
"""Colours and largest width of a picture."""


@dataclass(frozen=True)
class Drawn:
    """A picture of a page, and the words behind `vizpub` that draw it."""

    words: list[str]
    name: str

    @property
    def file(self) -> str:
        """The file that the command writes."""
        return self.words[-1]

    @property
    def path(self) -> Path:
        """The picture in the docs."""
        return PICTURES / self.name


def drawn_in(page: str) -> list[Drawn]:
    """The figures of the page that its commands draw, in their order."""
    commands, figures = [], []
    for typed, picture in _FENCED.findall(page):
        commands += [_words(line) for line in _COMMAND.findall(typed)]
        drawing = [words for words in commands if picture and f"-{picture}".endswith(words[-1])]
        if drawing:
            figures.append(Drawn(drawing[-1], picture))
    return figures


def runs_of(page: str) -> Iterator[list[str]]:
    """The words behind `vizpub` that make the runs of the page's figures."""
    asked = {word for one in drawn_in(page) for word in one.words[1:]}
    commands = map(_words, _COMMAND.findall(page))
    made = set()
    for words in [words for words in commands if {"--run", "--ingest"} & {*words}]:
        name = words[max(words.index(of) for of in ("--run", "--ingest") if of in words) + 1]
        if any(re.fullmatch(rf"{name}(-.*)?", word) for word in asked):
            made.add(name)
            yield words
    if "gossipsub" in asked - made:
        yield _TRACE


def _words(line: str) -> list[str]:
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    return [str(ROOT / word) if word.startswith("examples/") else word for word in words]


def _call(words: list[str]) -> None:
    print(f"vizpub {shlex.join(words)}", flush=True)
    done = CliRunner().invoke(app, words)
    if done.exit_code:
        raise SystemExit(done.stderr)


def _reduce(file: Path, command: str) -> None:
    with Image.open(file) as image:
        size = (_WIDTH, round(image.height * _WIDTH / image.width))
        small = image.convert("RGB")
        small = small.resize(size) if image.width > _WIDTH else small
    texts = PngInfo()
    texts.add_text(DRAWN_BY, command)
    small.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, optimize=True, pnginfo=texts)


def draw(page: Path, into: Path) -> None:
    """Draw the pictures of a page from new runs, into a folder."""
    text = page.read_text("utf-8")
    with TemporaryDirectory() as place, chdir(place):
        for settings in re.findall(r"```toml\n(.+?)```", text, re.DOTALL):
            Path("study.toml").write_text(settings, "utf-8")
        for words in runs_of(text):
            _call([*words, *([] if "--no-load" in words else ["--no-load"])])
        for one in drawn_in(text):
            _call(one.words)
            file = Path(one.file)
            if file.suffix == ".png":
                _reduce(file, shlex.join(one.words))
            (into / one.name).write_bytes(file.read_bytes())


def main() -> None:
    """Draw the pictures of some pages, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.gallery", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--into", type=Path, default=PICTURES, metavar="DIR")
    given = parser.parse_args()
    for page in given.pages:
        draw(page.absolute(), given.into.absolute())


if __name__ == "__main__":
    main()
