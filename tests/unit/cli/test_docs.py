"""Help, docs and README show the commands that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from vizpub.cli.main import app
from vizpub.cli.reference import DOCS, commands
from vizpub.cli.reference import PAGES as GENERATED
from vizpub.model.errors import UseError

ROOT = Path(__file__).parents[3]
GUIDES = [ROOT / "README.md", ROOT / "simulators" / "README.md"]
PAGES = [*GUIDES, *sorted((ROOT / "docs").rglob("*.md"))]
ROOT_COMMAND: Any = typer.main.get_command(app)
LEAVES = {name: c for name, c in commands() if not hasattr(c, "commands")}
COMMANDS = (
    "ingest metrics plot explore compare topic path message query sql cypher demo docs doctor "
    "export.gexf export.csv export.html export.bctrace export.check "
    "runs.list runs.show runs.log runs.summary runs.tables runs.path runs.files runs.check "
    "runs.settle runs.copy runs.export runs.import runs.remove "
    "neo4j.load neo4j.verify neo4j.rebuild neo4j.start neo4j.stop neo4j.status neo4j.browser "
    "neo4j.dump neo4j.restore neo4j.remove "
    "live.collect live.report live.watch live.tell "
    "lab.simulate.models lab.simulate.broadcast-cyclon lab.simulate.broadcast-static "
    "lab.simulate.broadcast-or-tree lab.simulate.chord lab.simulate.cyclon lab.simulate.floodsub "
    "lab.simulate.gossip lab.simulate.gossipsub lab.simulate.hyparview lab.simulate.pastry "
    "lab.simulate.poldercast lab.simulate.scribe lab.simulate.scribe-chord "
    "lab.simulate.spidercast lab.simulate.vitis lab.simulate.quasar "
    "lab.simulate.stan lab.simulate.damulticast lab.simulate.bayeux lab.simulate.magnet "
    "lab.construct.gm lab.construct.2d-oda lab.construct.cd-max "
    "lab.construct.cd-max-ref lab.construct.cd-oda lab.construct.cd-oda-i lab.construct.cd-oda-ii "
    "lab.channels.simulate lab.channels.gdfr lab.channels.mapping lab.channels.measure "
    "lab.channels.utal lab.keys lab.stress "
    "lab.experiment.list lab.experiment.show lab.experiment.run "
    "session.start session.stop session.status config.show"
)


def shown_lines(text: str) -> list[str]:
    """The calls of vizpub in the fenced blocks of a page."""
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    joined = (block.replace("\\\n", " ") for block in blocks)
    # Where some lines have a prompt, the others are printed.
    typed = (re.findall(r"^\$ (.*)", block, re.M) or block.splitlines() for block in joined)
    lines = (line.strip() for block in typed for line in block)
    # What stands far to the right explains the line.
    return [re.split(r"\s{2,}", line)[0] for line in lines if line.startswith("vizpub ")]


def parse(line: str) -> None:
    """Raises: typer.TyperException where the line is no call of a command."""
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((i for i, w in enumerate(words) if w in (">", "<", "|", "&", "&&")), None)]
    group = ROOT_COMMAND
    context = group.make_context("vizpub", words)
    while hasattr(group, "commands"):
        rest = [*context._protected_args, *context.args]
        name, group, words = group.resolve_command(context, rest)
        context = group.make_context(name, words, parent=context)


def test_commands_are_exactly_these() -> None:
    names = {name.removeprefix("vizpub ").replace(" ", ".") for name in LEAVES}
    assert names == set(COMMANDS.split())


@pytest.mark.parametrize("name", LEAVES)
def test_help_has_examples_of_its_own_command(name: str) -> None:
    text = LEAVES[name].help
    lines = shown_lines(text)
    assert lines
    assert all(line == name or line.startswith(f"{name} ") for line in lines)
    assert len(text.splitlines()[0]) <= 100, "the first line is shown in the list of commands"


@pytest.mark.parametrize("name", LEAVES)
def test_options_of_every_command_have_help(name: str) -> None:
    for parameter in LEAVES[name].params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name


@pytest.mark.parametrize("name", GENERATED)
def test_reference_page_equals_what_the_code_says(name: str) -> None:
    page = (DOCS / name).read_text("utf-8")
    assert page == GENERATED[name](), "make it anew with: python -m vizpub.cli.reference"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_command_lines_in_the_docs_can_be_parsed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8")
    # What the examples take as there: a file of options, and the code that the page shows.
    (tmp_path / "study.toml").touch()
    (tmp_path / "flood.py").write_text("".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    (tmp_path / "rumour.py").symlink_to(ROOT / "examples" / "rumour.py")
    for line in shown_lines(text):
        try:
            parse(line)
        except typer.Exit:
            pass  # --version prints it and ends
        except typer.TyperException as error:
            pytest.fail(f"{line}\n{error.format_message()}")


def test_parser_of_doc_lines_refuses_wrong_calls() -> None:
    for line in ("vizpub metrcs x", "vizpub metrics x --no-such", "vizpub runs", "vizpub path a"):
        with pytest.raises((typer.TyperException, UseError)):
            parse(line)


def test_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    first_words = {" ".join(name.split()[:2]) for name in LEAVES}
    assert not {name for name in first_words if f"{name} " not in readme.replace("`", " ")}


def test_readme_begins_with_all_families_of_systems() -> None:
    first = (ROOT / "README.md").read_text("utf-8").split("\n\n")[1].lower()
    families = {path.parent.name for path in (ROOT / "simulators/protocols").glob("*/__init__.py")}
    assert len(families) > 5
    assert not {name for name in families | {"constructed"} if name not in first}
