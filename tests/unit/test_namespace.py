"""One package, `vizpub`: what is in it, what sees it, and what is installed of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Set
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.installed import install_into
from tests.support.project import PACKAGES, PARTS, ROOT, in_namespace
from tests.unit.test_layout import MODULES, dotted, tracked
from vizpub.ingest.spark.shipping import pack_package


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """Where Python finds each module of the product that git knows."""
    paths = [path for path in tracked() if path.suffix == ".py"]
    found = {in_namespace(path) for path in paths if path.relative_to(ROOT).parts[0] in PACKAGES}
    assert len(found) > 400
    return found


class TestSeen:
    """A tool that does not follow links would see next to nothing of vizpub/, and find no fault."""

    def test_layout_tests_see_every_module(self, modules: Set[str]) -> None:
        assert {in_namespace(path) for path in MODULES} == modules

    def test_ruff_sees_every_module(self, modules: Set[str]) -> None:
        command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        paths = [Path(line) for line in listed.stdout.splitlines() if line.endswith(".py")]
        product = [path for path in paths if path.relative_to(ROOT).parts[0] in PACKAGES]
        assert {in_namespace(path) for path in product} == modules

    def test_mypy_sees_every_module(self, modules: Set[str]) -> None:
        sources = pytest.importorskip("mypy.find_sources")
        options = sys.modules["mypy.options"].Options()
        options.explicit_package_bases, options.mypy_path = True, [str(ROOT)]
        found = sources.create_source_list([str(ROOT / "vizpub")], options)
        assert {Path(source.path).relative_to(ROOT).as_posix() for source in found} == modules
        assert {source.module for source in found} == set(map(dotted, MODULES))

    def test_import_linter_sees_every_module(self) -> None:
        import grimp

        graph = grimp.build_graph("vizpub", cache_dir=None)
        assert graph.modules == set(map(dotted, MODULES))

    def test_executors_get_every_module(self, modules: Set[str], tmp_path: Path) -> None:
        names = ZipFile(pack_package(tmp_path)).namelist()
        assert {name for name in names if name.endswith(".py")} == modules


def test_public_names_are_imported_by_no_part() -> None:
    """The public names are for users; inside, a module imports what it needs from its place."""
    found = [
        dotted(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Import) and any(a.name == "vizpub" for a in node.names))
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "vizpub"
            and not {alias.name for alias in node.names} <= {*PARTS}
        )
    ]
    assert found == []


def test_folders_are_no_packages_outside_the_checkout() -> None:
    """Where vizpub is installed from a checkout, only `vizpub` is found."""
    code = (
        "import sys; from importlib.util import find_spec\n"
        "print(*(name for name in sys.argv[1:] if (s := find_spec(name)) and s.origin))"
    )
    variables = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    found = subprocess.run(
        [sys.executable, "-c", code, "vizpub", *PARTS],
        cwd="/",
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["vizpub"], "install the checkout again: make .venv/ready"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like site-packages, with our two wheels side by side."""
    folder = tmp_path_factory.mktemp("installed")
    install_into(folder, ROOT, ROOT / "reports")
    return folder


def python(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python that has the standard library, and what is installed there."""
    return subprocess.run(
        [sys.executable, "-S", *words],
        cwd=installed.parent,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


class TestInstalled:
    def test_wheels_bring_one_package_each(self, installed: Path) -> None:
        names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
        assert names - {"bin"} == {"vizpub", "vizpub_reporter"}

    def test_wheel_has_every_module_and_no_link(self, installed: Path, modules: Set[str]) -> None:
        there = list((installed / "vizpub").rglob("*"))
        assert {p.relative_to(installed).as_posix() for p in there if p.suffix == ".py"} == modules
        assert [path for path in there if path.is_symlink()] == []

    def test_reporter_needs_the_standard_library_only(self, installed: Path) -> None:
        names = [path.stem for path in (installed / "vizpub_reporter").glob("[!_]*.py")]
        assert {"client", "pulled", "records", "spool"} <= {*names}
        code = (
            "import sys; before = {*sys.modules}\n"
            f"from vizpub_reporter import {', '.join(names)}\n"
            "new = {name.partition('.')[0] for name in {*sys.modules} - before}\n"
            "print(new - sys.stdlib_module_names)"
        )
        told = python(installed, "-c", code)
        assert told.stdout == "{'vizpub_reporter'}\n", told.stderr

    def test_example_of_the_reporter_starts(self, installed: Path) -> None:
        told = python(installed, "-m", "vizpub_reporter.example", "--help")
        assert "--token" in told.stdout, told.stderr
