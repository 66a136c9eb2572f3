"""What the pages print below a command is what the command prints, as far as it is shown.

    python -m tests.support.printed        writes it anew, with Neo4j, in some minutes

A table below `vizpub query …` has the first rows of the answer. In a block of the console, … stands
for lines that are left out. A block `pycon` is a session of Python, in a folder with the workspace.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from doctest import DocTestParser
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner

from vizpub.cli.main import app

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
_OWN = re.compile(
    "--(ingest|attributes)|^python examples/|^vizpub lab experiment run", re.MULTILINE
)
OWN_RUNS = [page for page in RECIPES if _OWN.search(page.read_text("utf-8"))]
"""Recipes that make their own runs, in a folder of their own."""
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for page in RECIPES if page not in OWN_RUNS),
)
TRACE = ROOT / "examples" / "gossipsub"
QUERIES = ROOT / "docs" / "queries.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
SIMULATED = ("trees", "channels")
"""The runs that the page of queries simulates."""
OF_RUNS = "gossipsub"
"""The run whose row the answer of `vizpub query runs` shows."""

_TABLE = re.compile(r"```sh\n(vizpub query (?:[^`])+?)\n```\n\n((?:\|.*\n)+)")
_CONSOLE = re.compile(r"^\$ ((?:\w+=\S+ )*vizpub .+)\n((?:(?!```|\$ ).+\n)*)", re.MULTILINE)
_TYPED = re.compile(r"^```sh\n(.+?)^```\n", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^```pycon\n(.+?)^```\n", re.MULTILINE | re.DOTALL)
_LEFT_OUT = "…"
_WIDTH = "80"
_SHOWN = 4
"""Rows of a table that showed none."""
Call = Callable[..., tuple[str, str]]
"""Calls `vizpub` with words and an environment; returns what it prints: data, and messages."""


@dataclass(frozen=True)
class Shown:
    """A command on a page, and what the page has below it."""

    line: str
    text: str
    begin: int
    """Where the text begins in the page."""
    is_table: bool

    @property
    def words(self) -> list[str]:
        """The words behind `vizpub`."""
        return shlex.split(self.line.replace("\\\n", " ").partition("vizpub ")[2])

    @property
    def environment(self) -> dict[str, str]:
        """What stands before `vizpub`."""
        return dict(word.split("=", 1) for word in self.line.partition("vizpub ")[0].split())

    def printed(self, call: Call) -> str:
        """What the command prints now, as the page shows it."""
        if not self.is_table:
            data, messages = call(*self.words, **self.environment)
            return self._of_console(data or messages)
        head, rule, *rows = call(*self.words, "--format", "md")[0].splitlines(keepends=True)
        if self.words[-1] == "runs":
            rows = [row for row in rows if row.startswith(f"| {OF_RUNS} |")]
        return "".join([head, rule, *rows[: max(self.text.count("\n") - 2, 0) or _SHOWN]])

    def _of_console(self, printed: str) -> str:
        """Only the lines that the page has, by their first words, if it leaves some out."""
        if f"{_LEFT_OUT}\n" not in self.text:
            return printed
        there = {_first(line) for line in self.text.splitlines()}
        lines: list[str] = []
        for line in printed.splitlines():
            if _first(line) in there:
                lines.append(line)
            elif lines[-1:] != [_LEFT_OUT]:
                lines.append(_LEFT_OUT)
        return "".join(f"{line}\n" for line in lines)


def shown_in(page: str) -> list[Shown]:
    """The commands of a page that have an answer below them, in their order."""
    found = [
        Shown(match[1], match[2], match.start(2), form is _TABLE)
        for form in (_TABLE, _CONSOLE)
        for match in form.finditer(page)
    ]
    return sorted(found, key=lambda one: one.begin)


def anew(page: str, call: Call) -> str:
    """The page with what its commands print now."""
    for one in reversed(shown_in(page)):
        page = page[: one.begin] + one.printed(call) + page[one.begin + len(one.text) :]
    return page


def python_anew(page: str) -> str:
    """The page with what its sessions of Python print now; all are one, in this folder."""
    names: dict[str, object] = {}

    def session(block: re.Match[str]) -> str:
        lines = []
        for example in DocTestParser().get_examples(block[1]):
            with redirect_stdout(StringIO()) as printed:
                exec(compile(example.source, "a page", "single"), names)
            first, *others = example.source.splitlines()
            lines += [f">>> {first}", *(f"... {line}" for line in others)]
            lines += printed.getvalue().splitlines()
        return "".join(f"{line}\n" for line in ["```pycon", *lines, "```"])

    return _SESSION.sub(session, page)


def simulated(run: str) -> list[str]:
    """The words, behind `vizpub`, of the command that makes a run of the page of queries."""
    text = QUERIES.read_text("utf-8").replace("\\\n", " ")
    (line,) = re.findall(rf"^vizpub (lab .+ --ingest {run})$", text, re.MULTILINE)
    return shlex.split(line)


def configured(folder: Path) -> Call:
    """Write the file of the page of configuration into the workspace of a folder, with what it
    names. Returns calls with that folder as home; they must be made in it.
    """
    (toml, *_) = re.findall(r"```toml\n(.+?)```", CONFIGURATION.read_text("utf-8"), re.DOTALL)
    (folder / "vizpub-data").mkdir(exist_ok=True)
    (folder / "vizpub-data" / "vizpub.toml").write_text(toml)
    (password := folder / ".neo4j-password").touch(0o600)
    password.write_text("secret")
    return partial(called, HOME=str(folder))


def typed_in(page: str) -> Iterator[list[str]]:
    """The words, behind `vizpub`, of the commands in a page's blocks of the shell."""
    for block in _TYPED.findall(page):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("vizpub "):
                yield shlex.split(line, comments=True)[1:]


def furnish(page: str) -> None:
    """Put what a recipe takes as there into this folder: the examples, files that it shows, and
    what its scripts write.
    """
    Path("examples").symlink_to(ROOT / "examples")
    Path("rumour.py").symlink_to(ROOT / "examples" / "rumour.py")
    for toml in re.findall(r"```toml\n(.+?)```", page, re.DOTALL):
        Path("study.toml").write_text(toml, "utf-8")
    for script in re.findall(r"^python (examples/.+)$", page, re.MULTILINE):
        subprocess.run([sys.executable, *shlex.split(script)], check=True)


def _first(line: str) -> str:
    return (line.split() or [""])[0]


def called(*words: str, **environment: str) -> tuple[str, str]:
    """A Call in this process."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": _WIDTH, **environment})
    return done.stdout, done.stderr


def _make(*words: str) -> None:
    print(f"vizpub {shlex.join(words)}", flush=True)
    done = CliRunner().invoke(app, words)
    if done.exit_code:
        raise SystemExit(done.stderr)


def _pages() -> Iterator[tuple[Path, str]]:
    with TemporaryDirectory() as place, chdir(place):
        try:
            for words in (["ingest", str(TRACE), "--run", OF_RUNS], *map(simulated, SIMULATED)):
                _make(*words)
            for page in PAGES:
                if page == CONFIGURATION:
                    continue
                yield page, python_anew(anew(page.read_text("utf-8"), called))
        finally:
            _make("neo4j", "remove", "--yes")
        for path in OWN_RUNS:
            page = path.read_text("utf-8")
            with TemporaryDirectory() as own, chdir(own):
                furnish(page)
                for words in typed_in(page):
                    _make(*words)
                yield path, anew(page, called)
        yield CONFIGURATION, anew(CONFIGURATION.read_text("utf-8"), configured(Path(place)))


if __name__ == "__main__":
    for path, text in _pages():
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
            print(f"wrote {path}")
