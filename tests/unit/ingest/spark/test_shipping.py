from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.project import PACKAGES, ROOT
from vizpub.ingest.spark import shipping
from vizpub.ingest.spark.shipping import digest, pack, packages


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("packed"))


def test_packages_in_a_checkout_are_those_of_the_project() -> None:
    assert packages() == sorted(PACKAGES)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like site-packages, with our wheel and the package of another project."""
    folder = tmp_path_factory.mktemp("installed")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, check=True)
    ZipFile(next(folder.glob("*.whl"))).extractall(folder)
    (folder / "another").mkdir()
    (folder / "another" / "__init__.py").touch()
    return folder


def test_packages_of_a_wheel_are_those_of_the_project(installed: Path) -> None:
    code = "from vizpub.ingest.spark.shipping import packages; print(*packages())"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.split() == sorted(PACKAGES)


def test_archive_contains_all_files_read_at_run_time(packed: Path) -> None:
    names = set(ZipFile(packed).namelist())
    for pattern in ("*.py", "*.cypher", "*.toml", "*.lock", "*.properties"):
        for package in PACKAGES:
            for path in (ROOT / package).rglob(pattern):
                assert str(path.relative_to(ROOT)) in names


def test_archive_name_is_the_digest_of_the_installed_packages(packed: Path) -> None:
    assert packed.name == f"vizpub-{digest()}.zip"


def test_archive_contains_no_compiled_files(packed: Path) -> None:
    endings = {Path(name).suffix for name in ZipFile(packed).namelist()}
    assert not endings & {".pyc", ".nbi", ".nbc"}


def test_archive_has_the_same_bytes_for_the_same_files(packed: Path, tmp_path: Path) -> None:
    again = pack(tmp_path)
    assert again.name == packed.name
    assert again.read_bytes() == packed.read_bytes()


def test_archive_name_changes_with_the_content(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "packages", lambda: packages()[:-1])
    assert pack(tmp_path).name != packed.name


def test_archive_is_imported_without_unpacking(packed: Path, tmp_path: Path) -> None:
    code = "import vizpub.ingest.reports.files, vizpub.model.tables; print(vizpub.ingest.reports.files.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.strip() == str(packed / "ingest" / "reports" / "files.py")


def test_archive_at_a_relative_path_has_what_tasks_import(packed: Path) -> None:
    """Executors of a cluster may have it so."""
    code = "import sys; sys.path.insert(0, sys.argv[1])"
    imported = "import vizpub.ingest.spark.tasks, vizpub.simulators.engine.simulation"
    found = f"{code}; {imported}; print(vizpub.ingest.spark.tasks.__file__, vizpub.ingest.spark.session.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", found, packed.name],
        cwd=packed.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.split() == [
        f"{packed.name}/ingest/spark/{name}.py" for name in ("tasks", "session")
    ]
