"""A database that was made under another name takes the place of the old one, or none does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vizpub.graphstore.server.admin import LocalTool, finish_replacement
from vizpub.graphstore.server.home import ServerHome
from vizpub.graphstore.server.offline import SCRATCH

KINDS = ("databases", "transactions")


@pytest.fixture
def home(tmp_path: Path) -> ServerHome:
    """A home with an old database and one in the making."""
    for kind in KINDS:
        for database, text in (("neo4j", "old"), (SCRATCH, "new")):
            folder = tmp_path / "data" / kind / database
            folder.mkdir(parents=True)
            (folder / "file").write_text(text)
    return ServerHome(tmp_path)


def there(home: ServerHome) -> dict[str, str]:
    """What is in the databases, by their folders; there must be nothing else."""
    files = sorted(home.path.rglob("*"))
    return {
        str(f.parent.relative_to(home.path / "data")): f.read_text() for f in files if f.is_file()
    }


OLD = {f"{kind}/neo4j": "old" for kind in KINDS}
NEW = {f"{kind}/neo4j": "new" for kind in KINDS}


def test_unfinished_database_is_discarded(home: ServerHome) -> None:
    finish_replacement(home)
    assert there(home) == OLD


def test_remade_database_replaces_the_old_one(home: ServerHome) -> None:
    with LocalTool(home, Path("java"), "").replacement("neo4j") as name:
        assert name == SCRATCH
    assert there(home) == NEW
    finish_replacement(home)
    assert there(home) == NEW


def test_old_database_stays_if_the_remaking_fails(home: ServerHome) -> None:
    with pytest.raises(ZeroDivisionError), LocalTool(home, Path("java"), "").replacement("neo4j"):
        raise ZeroDivisionError
    finish_replacement(home)
    assert there(home) == OLD


@pytest.mark.parametrize("steps", range(5))
def test_replacement_killed_at_any_step_is_completed(home: ServerHome, steps: int) -> None:
    home.replacement_file.write_text("neo4j")
    databases, transactions = (home.path / "data" / kind for kind in KINDS)
    done: list[Callable[[], object]] = [
        lambda: shutil.rmtree(databases / "neo4j"),
        lambda: (databases / SCRATCH).rename(databases / "neo4j"),
        lambda: shutil.rmtree(transactions / "neo4j"),
        lambda: (transactions / SCRATCH).rename(transactions / "neo4j"),
    ]
    for step in done[:steps]:
        step()
    finish_replacement(home)
    assert there(home) == NEW


def test_name_that_a_power_cut_left_empty_removes_no_database(home: ServerHome) -> None:
    home.replacement_file.write_text("")
    finish_replacement(home)
    assert there(home) == OLD


def test_home_without_databases_stays_empty(tmp_path: Path) -> None:
    finish_replacement(ServerHome(tmp_path))
    assert list(tmp_path.iterdir()) == []
