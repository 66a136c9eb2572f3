"""`import vizpub`: what it gives, and what it loads for that."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import vizpub
from tests.support.grouped import add_attributes
from vizpub.analytics.comparison.groups import NO_INTERVAL
from vizpub.cli.main import app
from vizpub.model import errors

ROOT = Path(vizpub.__file__).parents[1]


def python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """A fresh Python that has the project behind what lies in `path`."""
    words = [
        sys.executable,
        "-c",
        f"import sys; sys.path[:0] = {[*map(str, path), str(ROOT)]}; {code}",
    ]
    return subprocess.run(words, check=False, capture_output=True, text=True, cwd="/")


@pytest.mark.parametrize("name", vizpub.__all__)
def test_public_name_is_that_of_its_package(name: str) -> None:
    found = getattr(vizpub, name)
    assert isinstance(found, ModuleType) or getattr(import_module(found.__module__), name) is found
    assert found.__doc__
    assert name in dir(vizpub)


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rum'"):
        vizpub.Rum  # noqa: B018


def test_import_loads_neither_arrow_nor_spark() -> None:
    heavy = {"pyarrow", "numba", "pyspark", "pandas", "neo4j"}
    told = python(f"import vizpub; vizpub.Report; print({heavy} & {{*sys.modules}} or 'none')")
    assert told.stdout == "none\n", told.stderr


def test_packages_of_the_same_plain_names_are_no_hindrance(tmp_path: Path) -> None:
    for name in ("runstore", "model", "ingest"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError")
    told = python("import vizpub; print(vizpub.Run.__module__)", tmp_path)
    assert told.stdout == "vizpub.run\n", told.stderr


PAGE = (ROOT / "docs/python.md").read_text("utf-8").partition("## Names")[2]
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}


def rows() -> dict[tuple[str, ...], set[str]]:
    """The names of each row of the page, and the errors in it."""
    lines = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    return {
        tuple(re.findall(r"`(\w+)`", names)): set(re.findall(r"`(\w+)`", raised))
        for names, _, raised in lines
    }


def raised_by(found: object) -> set[str]:
    """The errors that its docstring names, or those of its methods: after 'Raises:'."""
    callables = (
        [getattr(found, n) for n in dir(found) if n[0] != "_"] if isinstance(found, type) else []
    )
    texts = [inspect.getdoc(each) or "" for each in (found, *callables)]
    told = " ".join(text.partition("Raises:")[2].partition("\n\n")[0] for text in texts)
    return ERRORS & set(re.findall(r"\w+", told))


def test_page_lists_the_public_names() -> None:
    assert sorted(name for row in rows() for name in row) == sorted(vizpub.__all__)


def test_page_says_of_each_name_what_it_raises() -> None:
    told = {
        names: set[str]().union(*(raised_by(getattr(vizpub, name)) for name in names))
        for names in rows()
    }
    assert told == rows()


def test_simulated_reports_have_the_parameters_that_were_given(tmp_path: Path) -> None:
    given = {"peers": 5, "intervals": 3, "publications": "every:1"}
    folder = vizpub.simulate("poldercast", tmp_path / "five", seed=4, **given)
    records = [line.record for path in folder.iterdir() for line in vizpub.ReportReader(path)]
    (header,) = (record for record in records if isinstance(record, vizpub.RunHeader))
    assert (header.seed, header.parameters["peers"]) == (4, 5)
    reporting = {record.peer for record in records if isinstance(record, vizpub.Report)}
    assert reporting == {str(peer) for peer in range(5)}


def test_runs_of_a_workspace_are_those_of_the_command(workspace: Path) -> None:
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "runs", "list", "-f", "json"])
    expected = [
        {name: value for name, value in row.items() if name != "neo4j"}
        for row in json.loads(done.stdout)
    ]
    assert [row["run"] for row in expected] == ["half", "monday"]
    assert vizpub.runs(workspace).to_pylist() == expected
    assert len(vizpub.runs(workspace / "empty")) == 0


def test_version_is_that_of_the_command() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.stdout == f"vizpub {vizpub.__version__}\n"


def test_comparison_of_one_run_is_its_means_with_a_warning(workspace: Path) -> None:
    made = vizpub.Run.open(workspace, "monday")
    with pytest.warns(UserWarning, match=NO_INTERVAL):
        found = vizpub.compare(made, metrics=["network_size"])
    assert isinstance(found.to_arrow(), pa.Table)
    (row,) = found.to_pylist()
    sizes = made.metrics("overlay", ["network_size"])["network_size"].to_pylist()
    assert row["value"] == sum(sizes) / len(sizes)


@pytest.mark.filterwarnings("ignore:no confidence interval")
def test_comparison_of_groups_of_peers_is_that_of_the_command(workspace: Path) -> None:
    add_attributes(workspace, "monday", client="abab")
    made = vizpub.Run.open(workspace, "monday")
    call = ["--workspace", str(workspace), "compare", "monday", "--metrics", "degree", "-f", "json"]
    for words, given in (("--by", {"by": ["client"]}), ("--over", {"over": "client"})):
        done = CliRunner().invoke(app, [*call, words, "client"])
        found = vizpub.compare(made, metrics=["degree"], **given).to_pylist()  # type: ignore[arg-type]
        assert len(found) >= 2
        assert found == json.loads(done.stdout)
