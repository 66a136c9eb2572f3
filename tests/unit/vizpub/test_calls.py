"""`import vizpub`: what it gives, and what it loads for that."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import vizpub
from vizpub.analytics.comparison.groups import NO_INTERVAL

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
    assert getattr(import_module(found.__module__), name) is found
    assert found.__doc__
    assert name in dir(vizpub)


def test_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rum'"):
        vizpub.Rum  # noqa: B018


def test_import_loads_neither_arrow_nor_spark() -> None:
    heavy = {"pyarrow", "numba", "pyspark", "pandas", "neo4j"}
    told = python(f"import vizpub; vizpub.Report; print({heavy} & {{*sys.modules}} or 'none')")
    assert told.stdout == "none\n", told.stderr


def test_package_of_somebody_else_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "runstore").mkdir()
    (tmp_path / "runstore" / "__init__.py").touch()
    told = python("import vizpub; vizpub.Run", tmp_path)
    assert told.returncode == 1
    assert "install vizpub into an environment of its own" in told.stderr
    assert str(tmp_path) in told.stderr


def test_simulated_reports_have_the_parameters_that_were_given(tmp_path: Path) -> None:
    given = {"peers": 5, "intervals": 3, "publications": "every:1"}
    folder = vizpub.simulate("poldercast", tmp_path / "five", seed=4, **given)
    records = [line.record for path in folder.iterdir() for line in vizpub.ReportReader(path)]
    (header,) = (record for record in records if isinstance(record, vizpub.RunHeader))
    assert (header.seed, header.parameters["peers"]) == (4, 5)
    reporting = {record.peer for record in records if isinstance(record, vizpub.Report)}
    assert reporting == {str(peer) for peer in range(5)}


def test_comparison_of_one_run_is_its_means_with_a_warning(workspace: Path) -> None:
    made = vizpub.Run.open(workspace, "monday")
    with pytest.warns(UserWarning, match=NO_INTERVAL):
        found = vizpub.compare(made, metrics=["network_size"])
    assert isinstance(found.to_arrow(), pa.Table)
    (row,) = found.to_pylist()
    sizes = made.metrics("overlay", ["network_size"])["network_size"].to_pylist()
    assert row["value"] == sum(sizes) / len(sizes)
