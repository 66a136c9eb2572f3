from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.project import PACKAGES, ROOT, in_namespace
from vizpub.ingest.spark import shipping
from vizpub.ingest.spark.shipping import digest, pack_package


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack_package(tmp_path_factory.mktemp("packed"))


def test_archive_contains_all_files_read_at_run_time(packed: Path) -> None:
    names = set(ZipFile(packed).namelist())
    for pattern in ("*.py", "*.cypher", "*.toml", "*.lock", "*.properties"):
        for package in PACKAGES:
            for path in (ROOT / package).rglob(pattern):
                assert in_namespace(path) in names


def test_archive_name_is_the_digest_of_the_installed_packages(packed: Path) -> None:
    assert packed.name == f"vizpub-{digest()}.zip"


def test_archive_contains_no_compiled_files(packed: Path) -> None:
    endings = {Path(name).suffix for name in ZipFile(packed).namelist()}
    assert not endings & {".pyc", ".nbi", ".nbc"}


def test_archive_has_the_same_bytes_for_the_same_files(packed: Path, tmp_path: Path) -> None:
    again = pack_package(tmp_path)
    assert again.name == packed.name
    assert again.read_bytes() == packed.read_bytes()


def test_archive_name_changes_with_the_content(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "_LEFT_OUT", (*shipping._LEFT_OUT, ".lock"))
    assert pack_package(tmp_path).name != packed.name


def test_archive_is_imported_without_unpacking(packed: Path, tmp_path: Path) -> None:
    code = "from vizpub.reports import files; import vizpub.model.tables; print(files.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.strip() == str(packed / "vizpub" / "reports" / "files.py")


def test_archive_at_a_relative_path_has_what_tasks_import(packed: Path) -> None:
    """Executors of a cluster may have it so."""
    code = "import sys; sys.path.insert(0, sys.argv[1])"
    imported = "import vizpub.simulators.engine.simulation; from vizpub.ingest.spark import tasks"
    found = f"{code}; {imported}, session; print(tasks.__file__, session.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", found, packed.name],
        cwd=packed.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.split() == [
        f"{packed.name}/vizpub/ingest/spark/{name}.py" for name in ("tasks", "session")
    ]
