from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from numba.core.errors import TypingError

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int64s

ROOT = Path(__file__).parents[3]
KERNEL = """
from vizpub.machine.compiled import compiled

@compiled("int64(int64)")
def twice(x):
    return {factor} * x
"""
CALL = """
from kernels.twice import twice
print(twice(21), sum(twice.stats.cache_hits.values()))
"""
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Imports the kernel as an executor does: from a zip in a directory that is new each time."""

    def call(name: str, factor: int = 2, cache: Path = tmp_path / "cache") -> str:
        folder = tmp_path / f"executor-{len(list(tmp_path.glob('executor-*')))}"
        folder.mkdir()
        with ZipFile(folder / name, "w") as archive:
            archive.writestr("kernels/__init__.py", "")
            archive.writestr("kernels/twice.py", KERNEL.format(factor=factor))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder / name}{os.pathsep}{ROOT}",
            "NUMBA_CACHE_LOCATOR_CLASSES": (
                "vizpub.machine.compiled.PackedLocator,UserProvidedCacheLocator"
            ),
            "VIZPUB_CACHE": str(cache),
        }
        return subprocess.run(
            [sys.executable, "-c", CALL],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    return call


def test_compiled_kernel_is_found_from_another_directory_until_its_code_changes(run: Run) -> None:
    assert run("vizpub-0a1b.zip") == "42 0"
    assert run("vizpub-0a1b.zip") == "42 1"
    assert run("vizpub-2c3d.zip", factor=3) == "63 0"


@pytest.mark.long
def test_kernel_is_compiled_with_an_unusable_cache(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run("vizpub-0a1b.zip", cache=tmp_path / "file") == "42 0"


@pytest.mark.long
def test_kernel_of_a_foreign_archive_is_not_cached(run: Run, tmp_path: Path) -> None:
    assert run("others.zip") == "42 0"
    assert not (tmp_path / "cache").exists()


def test_function_that_owns_nothing_makes_no_array() -> None:
    with pytest.raises(TypingError, match="zeros"):

        @compiled("int64(int64)", owns=False)
        def first_of_new(size: int) -> int:
            return int(np.zeros(size, np.int64)[0])


def test_function_that_owns_nothing_leaves_what_it_is_given() -> None:
    """It reads and writes slices, and nobody else's reference is dropped."""

    def shifted(values: Int64s) -> int:
        rest = values[1:]
        for place in range(len(rest)):
            values[place] = rest[place]
        return len(rest)

    given = np.arange(1_000)
    held, seen = sys.getrefcount(given), given[::2]
    assert compiled("int64(int64[::1])", owns=False)(shifted)(given) == 999
    assert sys.getrefcount(given) == held + 1  # of `seen`
    assert given.tolist() == [*range(1, 1_000), 999]
    assert seen.tolist() == given.tolist()[::2]
