"""The files that a run was made from, in run.json and in its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.reserved import Reserved
from tests.support.tables import EMPTY
from vizpub.runstore import durable
from vizpub.runstore.inputs import LISTED, all_inputs, drop_inputs, shorten_inputs
from vizpub.runstore.manifest import FILE, read_manifest
from vizpub.runstore.writer import writing


def entry(number: int, damage: str | None = None) -> dict[str, Any]:
    name = f"/in/{number}.ndjson"
    kind = {"encoding": "ndjson", "sha256": f"{number:064x}", "damage": damage}
    return {"path": name, "size": number, **kind}


def fed(workspace: Path, files: int) -> int:
    """A run that grows file by file; one in a hundred is damaged. Returns the size of run.json."""
    with writing(workspace, "monday") as writer:
        for number in range(files):
            if (base := writer.stored) is None:
                writer.begin(EMPTY)
            before = base or EMPTY
            file = entry(number, "torn" if number % 100 == 7 else None)
            grown = replace(before, state="complete", inputs=(*before.inputs, file), carry={})
            writer.commit(shorten_inputs(writer, grown, base))
    return (workspace / "runs/monday" / FILE).stat().st_size


def test_fed_run_lists_few_of_its_files_and_knows_all(tmp_path: Path) -> None:
    few, many = fed(tmp_path / "few", LISTED), fed(tmp_path / "many", 4 * LISTED)
    assert many < 1.5 * few
    run = read_manifest(tmp_path / "many/runs/monday")
    found = {file["path"]: file for file in all_inputs(tmp_path / "many/runs/monday", run)}
    assert len(run.inputs) <= LISTED + 10
    assert [file["path"] for file in run.inputs if file["damage"]][:2] == [
        "/in/7.ndjson",
        "/in/107.ndjson",
    ]
    assert found == {
        file["path"]: file
        for file in (entry(n, "torn" if n % 100 == 7 else None) for n in range(4 * LISTED))
    }
    assert run.input_size == (4 * LISTED, sum(range(4 * LISTED)))


def test_files_that_are_not_needed_are_forgotten_wherever_they_are_listed(tmp_path: Path) -> None:
    fed(tmp_path, 3 * LISTED)
    with writing(tmp_path, "monday") as writer:
        assert writer.stored
        assert drop_inputs(writer, writer.stored, lambda file: False) is writer.stored
        writer.commit(drop_inputs(writer, writer.stored, lambda file: file["size"] % 3 != 0))
    directory = tmp_path / "runs/monday"
    run, kept = read_manifest(directory), range(0, 3 * LISTED, 3)
    assert sorted(file["size"] for file in all_inputs(directory, run)) == [*kept]
    assert run.input_size == (len(kept), sum(kept))


def test_batches_are_where_the_workspace_is(tmp_path: Path) -> None:
    """A collected run that was restored, or moved with its workspace, can be settled."""
    case = Reserved(tmp_path)
    durable.write(case.of.batches / "2.ndjson", "a batch")
    case.append(inputs=(entry(1), entry(2)))
    directory = tmp_path / "runs/lab"
    paths = [file["path"] for file in all_inputs(directory, case.stored)]
    assert paths == ["/in/1.ndjson", str(case.of.batches / "2.ndjson")]
    case.of.identify()  # another collection of that name
    assert [file["path"] for file in all_inputs(directory, case.stored)][1] == "/in/2.ndjson"
