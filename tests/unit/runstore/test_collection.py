"""Who owns the name of a run that is collected, and what is left after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.permissions import as_a_user
from tests.support.reserved import LAB, Reserved
from tests.support.tables import add, everything, links
from tests.support.words import naming, tells
from vizpub.model.errors import NothingCollected, RunCollected, RunLocked, UnknownName, UseError
from vizpub.questions.summary import facts_for_people
from vizpub.runstore.collection import check_name, retired_collections
from vizpub.runstore.manifest import FILE, Manifest
from vizpub.runstore.store import open_run, runs
from vizpub.runstore.writer import NOT_BEGUN, remove_run, removing

ROOT = Path(__file__).parents[3]


@pytest.fixture
def case(tmp_path: Path) -> Reserved:
    return Reserved(tmp_path)


def begin(case: Reserved, manifest: Manifest) -> None:
    with case.writer() as writer:
        writer.begin(manifest)


class TestOwner:
    @pytest.mark.parametrize("appended", [False, True])
    def test_paused_collection_lets_its_run_be_settled_only(
        self, case: Reserved, *, appended: bool
    ) -> None:
        if appended:
            case.append()
        before = case.stored
        with pytest.raises(RunCollected, match=naming("lab", "vizpub live collect lab --stop")):
            begin(case, LAB)
        with pytest.raises(RunCollected):
            check_name(case.workspace, "lab")
        assert case.stored == before
        begin(case, case.made)

    def test_run_is_only_read_while_it_is_collected(self, case: Reserved) -> None:
        case.append()
        before = everything(case.workspace)
        with case.of.hold():
            for manifest in (LAB, case.made):
                with pytest.raises(RunCollected, match=naming("lab", f"process {os.getpid()}")):
                    begin(case, manifest)
            with pytest.raises(RunCollected, match=naming("lab", f"process {os.getpid()}")):
                remove_run(case.workspace, "lab")
            assert open_run(case.workspace, "lab").rows("links") == 9
            case.append()
        assert open_run(case.workspace, "lab").rows("links") == 9
        assert len(everything(case.workspace)) == len(before)

    def test_run_that_has_ended_is_like_any_other(self, case: Reserved) -> None:
        case.append(ended=True)
        assert case.of.has_ended
        with case.of.hold(), pytest.raises(RunCollected):  # which may settle it yet
            begin(case, LAB)
        check_name(case.workspace, "lab")
        with case.writer() as writer:
            writer.begin(LAB)
            add(writer, "versions", "links", links(5, seed=2), state="complete")
        assert not case.of.has_ended
        assert case.of.is_retired

    def test_name_is_nobodys_where_run_and_collection_do_not_agree(self, case: Reserved) -> None:
        """As of a copy under another name, or a collection that somebody deleted."""
        case.append()
        (case.workspace / "runs/lab").rename(case.workspace / "runs/copy")
        check_name(case.workspace, "copy")
        (case.workspace / "runs/copy").rename(case.workspace / "runs/lab")
        case.of.delete()
        check_name(case.workspace, "lab")
        begin(case, LAB)

    def test_collection_of_another_user_owns_its_run(self, case: Reserved) -> None:
        """Who may not see its identity takes its word."""
        case.append()
        case.of.folder.chmod(0)
        try:
            with as_a_user(), pytest.raises(RunCollected, match=naming("lab")):
                begin(case, LAB)
            with as_a_user():
                assert retired_collections(case.workspace) == []
        finally:
            case.of.folder.chmod(0o700)

    def test_only_one_process_collects(self, case: Reserved) -> None:
        """The lock is the kernel's, which knows when its holder was killed."""
        code = (
            "import sys, time; from pathlib import Path\n"
            "from vizpub.runstore.collection import Collected\n"
            "with Collected(Path(sys.argv[1]), 'lab').hold(): print('held', flush=True); "
            "time.sleep(600)"
        )
        command = [sys.executable, "-c", code, str(case.workspace)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            assert child.stdout.readline() == "held\n"
            with pytest.raises(RunLocked, match=naming(f"process {child.pid}")), case.of.hold():
                pass
            with pytest.raises(RunCollected, match=naming(f"process {child.pid}")):
                begin(case, LAB)
            child.kill()
        with case.of.hold():
            case.append()


class TestReserved:
    def test_run_without_interval_says_how_to_go_on(self, case: Reserved) -> None:
        with pytest.raises(NothingCollected) as caught:
            open_run(case.workspace, "lab")
        tells(str(caught.value), "lab", "vizpub live watch lab", "vizpub live collect lab")
        assert "ingest" not in str(caught.value)

    def test_name_stays_reserved_where_the_first_append_is_refused(self, case: Reserved) -> None:
        reserved = case.stored
        with case.writer(collects=True) as writer:
            writer.begin(case.made)
            add(writer, "parse", "staged/parsed.events", links(9, seed=2))
            writer.restore()
        assert case.stored == reserved
        assert everything(case.workspace / "runs/lab") == {FILE}
        case.append()

    def test_name_is_given_back_where_no_run_came_to_be(self, case: Reserved) -> None:
        with case.writer(collects=True) as writer:
            writer.release()
        assert runs(case.workspace) == []
        Reserved(case.workspace).append()
        with case.writer(collects=True) as writer:
            writer.release()
        assert open_run(case.workspace, "lab").rows("links") == 9

    def test_summary_says_whether_it_is_collected(self, case: Reserved) -> None:
        def told() -> str:
            return dict(facts_for_people(open_run(case.workspace, "lab")))["collection"]

        case.append()
        tells(told(), "vizpub live collect lab")
        with case.of.hold():
            tells(told(), f"process {os.getpid()}")
        case.append(ended=True)
        assert "vizpub" not in told()


class TestRemoved:
    def test_collection_outlives_its_run_and_makes_none_by_itself(self, case: Reserved) -> None:
        """Nor does an append of a collector that was killed."""
        case.append()
        before = everything(case.of.folder)
        remove_run(case.workspace, "lab")
        assert retired_collections(case.workspace) == [case.of]
        assert everything(case.of.folder) == before
        with pytest.raises(UseError, match=naming("lab", NOT_BEGUN)):
            case.append()
        assert runs(case.workspace) == []
        with pytest.raises(UnknownName):
            remove_run(case.workspace, "lab")
        begin(case, LAB)  # the name is free
        with pytest.raises(UseError, match=naming("lab", NOT_BEGUN)):
            case.append()

    def test_collection_is_deleted_where_that_is_asked_for(self, case: Reserved) -> None:
        case.append()
        for _ in "run", "collection":  # of which the second has no run
            with removing(case.workspace, "lab", with_log=True):
                assert case.of.folder.is_dir()
            assert everything(case.workspace) == set()
            case.of.log.mkdir(parents=True)
            (case.of.log / "0").write_text("told")
        case.of.delete()
        with pytest.raises(UnknownName), removing(case.workspace, "lab", with_log=True):
            pass

    def test_failed_removal_deletes_nothing(self, case: Reserved) -> None:
        case.append()
        before = everything(case.workspace)
        removal = removing(case.workspace, "lab", with_log=True)
        with pytest.raises(ValueError, match="Neo4j"), removal:
            raise ValueError("Neo4j does not answer")
        assert everything(case.workspace) == before
