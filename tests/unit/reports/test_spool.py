"""Lines on disk, against a list that has the same done to it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from vizpub.reports.spool import Spool


@pytest.mark.parametrize("seed", range(20))
def test_spool_gives_what_was_added_in_order_until_it_is_sent(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    rng, path = random.Random(seed), tmp_path / "spool"
    spool, kept, taken, number = Spool(path), list[bytes](), 0, 0
    for _ in range(300):
        match rng.choice(["add", "take", "sent", "back", "again"]):
            case "add":
                lines = [b"%d" % n for n in range(number, number + rng.randint(1, 5))]
                number += len(lines)
                spool.add(lines)
                kept += lines
            case "take":
                count = rng.randint(1, 6)
                assert spool.take(count) == kept[taken : taken + count]
                taken = min(taken + count, len(kept))
            case "sent":
                spool.confirm()
                kept, taken = kept[taken:], 0
            case "back":
                spool.put_back()
                taken = 0
            case "again" if not kept or rng.random() < 0.2:
                spool.put_back()
                spool.close()
                spool, taken = Spool(path), 0
                # What was sent of a file may come again, and nothing else.
                found = spool.take(10**6)
                assert found[len(found) - len(kept) :] == kept
                kept = found
                spool.put_back()
        assert spool.has_more == (taken < len(kept))
        assert spool.is_empty == (not kept)
    spool.close()


def test_half_a_line_of_a_kill_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    path.write_bytes(b"one\ntwo\nthr")
    spool = Spool(path)
    spool.add([b"four"])
    assert spool.take(9) == [b"one", b"two", b"four"]
    spool.close()


def test_line_of_any_length_comes_whole(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    lines = [b"a" * 3_000_000, b"b", b"c" * 1_500_000]
    spool.add(lines)
    assert [spool.take(1) for _ in lines] == [[line] for line in lines]
    spool.close()
