"""The shape of the project: what lies where, how large it is, and what imports what."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.project import PACKAGES, PARTS, ROOT, in_namespace

LONGEST_MODULE, LONGEST_FUNCTION = 400, 60
HEAVY = ("pyspark", "pandas", "numba", "matplotlib", "jgo", "networkx")
"""What a command that only asks or reads must not wait for."""
SPARK = ("vizpub.analytics", "vizpub.ingest")
"""Who may import pyspark, with all below; `NO_SPARK` are the exceptions."""
NO_SPARK = ("vizpub.analytics.comparison", "vizpub.analytics.figures", "vizpub.reports")
OF_MANY = (
    "cli/test_docs.py",
    "cli/test_misuses.py",
    "cli/test_other_servers.py",
    "cli/test_terminal.py",
    "cli/test_unexpected.py",
    "cypher/test_page.py",
    "cypher/test_statements.py",
)
"""Unit tests of all modules or statements of a package at once."""

NO_NOUN = re.compile(
    "test_(a|an|the|it|they|this|that|these|those|what|which|who|whom|whose|one|nobody|nothing|"
    "everybody|everything|somebody|all|each|every|some|no|not|where|when|while|if|is|are|with|"
    "without|of|in|on|by|from|to|for|as|at|after|before|between|but|there)(_|$)"
)
"""Names of tests that begin with a word for something, not with its name."""

MODULES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(path: Path) -> str:
    """The name under which the file is imported."""
    return in_namespace(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tracked() -> list[Path]:
    """Files that git knows, and that are there."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nobody can say which files belong to the project")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def ours() -> list[Path]:
    """Tracked files but those of other projects, which are kept unchanged: a file beside them has
    their checksums.
    """
    list_of_them = "vendored.toml"
    return [
        path
        for path in tracked()
        if path.name == list_of_them or not (path.parent / list_of_them).exists()
    ]


Function = ast.FunctionDef | ast.AsyncFunctionDef


def body_lines(function: Function) -> int:
    """Lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


class Facts(NamedTuple):
    """What is asked of a file. Its tree is not kept: all of them would slow down what follows."""

    functions: tuple[tuple[str, int], ...]
    """Names, and lines of the bodies."""
    imports: frozenset[str]
    """Names of all modules that it imports, at its top or inside a function."""


@cache
def facts(path: Path) -> Facts:
    functions, imports = [], set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, Function):
            functions.append((node.name, body_lines(node)))
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.add(node.module)
    return Facts(tuple(functions), frozenset(imports))


def inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)


class TestSize:
    def test_module_length_stays_within_the_limit(self) -> None:
        lines = {relative(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
        assert {path: count for path, count in lines.items() if count > LONGEST_MODULE} == {}

    def test_function_length_stays_within_the_limit(self) -> None:
        long = {
            f"{relative(path)}:{name}": lines
            for path in [*MODULES, *TESTS]
            for name, lines in facts(path).functions
            if lines > LONGEST_FUNCTION
        }
        assert not long


class TestPlaces:
    @pytest.mark.parametrize("name", PARTS)
    def test_package_is_imported_from_this_project(self, name: str) -> None:
        found = importlib.import_module(f"vizpub.{name}").__file__
        assert found is not None
        assert Path(found).resolve() == ROOT / name / "__init__.py"

    def test_code_lies_only_in_known_folders(self) -> None:
        folders = {path.relative_to(ROOT).parts[0] for path in tracked() if path.suffix == ".py"}
        assert folders <= {*PACKAGES, "tests", "docker", "docs", "examples", "benchmarks"}

    def test_init_file_of_ingest_imports_nothing(self) -> None:
        tree = ast.parse((ROOT / "ingest/__init__.py").read_text("utf-8"))
        assert ast.get_docstring(tree)
        assert len(tree.body) == 1

    def test_folders_of_tests_are_no_packages(self) -> None:
        """With tests/graphstore/__init__.py, `import graphstore` would find the tests."""
        assert [path for path in TESTS if path.name == "__init__.py"] == []

    def test_unit_test_path_names_an_existing_module(self) -> None:
        """tests/unit/<package>/test_<module>.py; what is of no package is of the project."""
        names = set()
        for path in MODULES:
            place = path.parent if path.stem == "__init__" else path.with_suffix("")
            place = place.relative_to(ROOT)
            names |= {(folder, place.name) for folder in place.parents}
        lost = [
            relative(path)
            for path in TESTS
            if path.is_relative_to(ROOT / "tests/unit") and path.name != "conftest.py"
            for inside_unit in [path.relative_to(ROOT / "tests/unit")]
            if len(inside_unit.parts) > 1
            and str(inside_unit) not in OF_MANY
            and (inside_unit.parent, path.stem.removeprefix("test_")) not in names
        ]
        assert lost == []


class TestNames:
    def test_name_of_a_test_begins_with_a_noun(self) -> None:
        """Who reads that it failed must know of what."""
        found = [
            f"{relative(path)}: {name}"
            for path in TESTS
            for name, _ in facts(path).functions
            if NO_NOUN.match(name)
        ]
        assert found == []


class TestImports:
    def test_pyspark_is_imported_only_in_listed_modules(self) -> None:
        outside = [
            dotted(path)
            for path in MODULES
            if any(inside(name, ("pyspark", "graphframes")) for name in facts(path).imports)
            and (not inside(dotted(path), SPARK) or inside(dotted(path), NO_SPARK))
        ]
        assert outside == []

    def test_import_of_a_part_by_its_folder_occurs_nowhere(self) -> None:
        """The folders of the packages are beside `vizpub/`, and are imported from it."""
        others = [path for name in ("benchmarks", "docker") for path in (ROOT / name).rglob("*.py")]
        found = {
            relative(path): names
            for path in [*MODULES, *TESTS, *others]
            if (names := {name.partition(".")[0] for name in facts(path).imports} & {*PARTS})
        }
        assert found == {}

    def test_neo4j_is_imported_only_in_graphstore(self) -> None:
        speaking = {
            dotted(path).split(".")[1]
            for path in MODULES
            if any(inside(name, ("neo4j", "py2neo")) for name in facts(path).imports)
        }
        assert speaking == {"graphstore"}

    @staticmethod
    def loaded_by(*names: str) -> set[str]:
        """The top-level modules that a fresh Python has after importing those."""
        code = f"import sys, {', '.join(names)}; print(*{{m.split('.')[0] for m in sys.modules}})"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    @staticmethod
    def modules_of(*packages: str) -> list[str]:
        return [dotted(path) for path in MODULES if inside(dotted(path), packages)]

    def test_store_modules_load_no_heavy_packages(self) -> None:
        names = self.modules_of(
            *(
                "vizpub." + name
                for name in ("model", "machine", "cypher", "runstore", "questions", "reports")
            )
        )
        names.remove("vizpub.machine.compiled")  # who measures or simulates asks for it
        loaded = self.loaded_by(*names, "vizpub.questions.run")
        assert loaded & {*HEAVY, "neo4j"} == set()

    def test_graphstore_loads_no_heavy_packages(self) -> None:
        driver = self.loaded_by("neo4j")  # loads pandas where it is; see cli/imports.py
        assert (self.loaded_by(*self.modules_of("vizpub.graphstore")) - driver) & set(
            HEAVY
        ) == set()

    def test_command_line_loads_no_heavy_packages(self) -> None:
        assert (
            self.loaded_by(*self.modules_of("vizpub.cli")) & {*HEAVY, "neo4j", "pyarrow"} == set()
        )

    def test_explorer_loads_no_heavy_packages(self) -> None:
        assert self.loaded_by(*self.modules_of("vizpub.explorer")) & {*HEAVY, "neo4j"} == set()

    def test_figures_load_no_pyspark_numba_or_networkx(self) -> None:
        loaded = self.loaded_by("vizpub.analytics.figures")
        assert loaded & {"pyspark", "numba", "networkx"} == set()

    def test_report_contract_loads_the_standard_library_only(self) -> None:
        ours = self.loaded_by("vizpub.reports.files") - self.loaded_by("os")
        foreign = ours - set(sys.stdlib_module_names) - {"vizpub"}
        assert {name for name in foreign if not name.startswith("_")} == set()


def _host(*labels: str) -> str:
    return re.escape(".".join(labels))


REGISTRIES = "|".join(
    [
        *(_host(*labels) for labels in (("pypi", "org"), ("pythonhosted", "org"))),
        *(_host(*labels) for labels in (("maven", "org"), ("maven", "apache", "org"))),
        *(_host(*labels) for labels in (("registry", "npmjs", "org"), ("crates", "io"))),
        *(_host(*labels) for labels in (("docker", "io"), ("ghcr", "io"), ("quay", "io"))),
        _host("proxy", "golang", "org"),
    ]
)
PLACES = "|".join(rf"(?<![\w.-])/{name}/" for name in ("work", "root", "home", "Users"))
WORKPLACE = "|".join(
    [r"\bdesign" + " pages?", r"\bissue" + r" #?\d", r"\bthe" + " brief", r"\bhelper" + r"s?\b"]
)


class TestWords:
    """What is of the place where the code was written does not belong into it."""

    @pytest.mark.parametrize("pattern", [REGISTRIES, PLACES, WORKPLACE])
    def test_files_name_no_registry_or_workplace(self, pattern: str) -> None:
        found = [
            f"{relative(path)}:{number}: {line.strip()[:100]}"
            for path in ours()
            if re.search(pattern, _text(path))
            for number, line in enumerate(_text(path).splitlines(), 1)
            if re.search(pattern, line)
        ]
        assert found == []

    def test_files_name_no_folder_beside_the_checkout(self) -> None:
        """`.ci` alone knows what lies beside the checkout."""
        beside = "../" + "shared"
        paths = [path for path in tracked() if not relative(path).startswith(".ci/")]
        assert [relative(path) for path in paths if beside in _text(path)] == []


@cache
def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""


class TestLock:
    @pytest.fixture
    def lines(self) -> list[str]:
        return (ROOT / "requirements.lock").read_text("utf-8").splitlines()

    def test_requirements_are_pinned_and_hashed(self, lines: list[str]) -> None:
        starts = [i for i, line in enumerate(lines) if re.match(r"[\w.\[\]-]+ ?==", line)]
        assert len(starts) > 50
        for start in starts:
            rest = lines[start + 1 :]
            hashes = list(takewhile(lambda line: line.lstrip().startswith("--hash="), rest))
            assert hashes, lines[start]
            assert all(re.match(r"\s+--hash=sha256:[0-9a-f]{64}( \\)?$", line) for line in hashes)

    def test_lock_has_only_requirements_hashes_and_comments(self, lines: list[str]) -> None:
        allowed = r"[\w.\[\]-]+==[\w.!+-]+( ; [^\\]+)? \\$|\s+--hash=|\s*#|$"
        assert [line for line in lines if not re.match(allowed, line)] == []

    def test_lock_names_no_package_index(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        assert "://" not in text
        assert not re.search(r"--(extra-)?index-url|--find-links|--trusted-host|^-[if]", text)
