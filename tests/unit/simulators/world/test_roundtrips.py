"""Both formats of round-trip matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.words import naming, tells
from vizpub.model.errors import InputError
from vizpub.simulators.world.roundtrips import NEITHER, incomplete, read_matrix, symmetric

NAN = float("nan")


def written(folder: Path, text: str) -> str:
    (folder / "rtt").write_text(text)
    return str(folder / "rtt")


@pytest.mark.parametrize("between", ["\t", " ", "  ", ", "])
def test_matrix_is_read_as_a_line_for_each_site(tmp_path: Path, between: str) -> None:
    rows = [["0", "1.5", "2"], ["1.5", "0", "-1"], ["2", "-1", "0"]]
    name = written(tmp_path, "\n".join(between.join(row) for row in rows) + "\n\n")
    expected = [[0, 1.5, 2], [1.5, 0, NAN], [2, NAN, 0]]
    np.testing.assert_array_equal(read_matrix(name), expected)


@pytest.mark.parametrize("head", ["", "topology E2EGraph 3\nfailure_model NullFailureModel\n\n"])
@pytest.mark.parametrize("pair", ["{},{} {}", "{} {} {}", "{}, {}, {}"])
def test_king_file_is_read_as_nodes_and_pairs(tmp_path: Path, head: str, pair: str) -> None:
    pairs = "\n".join(pair.format(*each) for each in [(1, 2, 30), (1, 3, 45), (3, 2, -1)])
    times = read_matrix(written(tmp_path, f"{head}node 1\nnode 2\nnode 3\n\n{pairs}\n"))
    expected = [[NAN, 30, 45], [30, NAN, NAN], [45, NAN, NAN]]
    np.testing.assert_array_equal(times, expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("0 1\n1 x\n", "rtt:2: 'x'"),
        ("0 1\n\n1 0 3\n", "rtt:3: 3 .*2 "),
        ("0 1\n1 0\n1 2\n", "3 lines of 2 times"),
        ("0\n1\n", "2 lines of 1 time$"),
        ("node 1\nnode 2\n1,3 5\n", "rtt:3: .*1 to 2"),
        ("node 1\nnode 2\n0,1 5\n", "rtt:3: .*1 to 2"),
        ("node 1\nnode 2\n1,2\n", "rtt:3: '1,2'"),
        ("node 1\nnode 2\n1,2 far\n", "rtt:3: 'far'"),
        ("node 1\nnode 2\n", NEITHER),
        ("site,rtt\na,3\n", NEITHER),
    ],
)
def test_invalid_matrix_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_matrix(written(tmp_path, text))


def test_asymmetric_times_are_refused_or_averaged() -> None:
    times = np.array([[9.0, 1.0, 2.0], [1.0, 9.0, 4.0], [2.5, 5.0, 9.0]])
    with pytest.raises(InputError, match=naming("x: 2", "site 1 to 3", "2.5")):
        symmetric(times, "x", is_mean_meant=False)
    mean = symmetric(times, "x", is_mean_meant=True)
    np.testing.assert_array_equal(mean, [[9, 1, 2.25], [1, 9, 4.5], [2.25, 4.5, 9]])
    np.testing.assert_array_equal(symmetric(mean, "x", is_mean_meant=False), mean)


def test_holes_in_the_matrix_are_named() -> None:
    times = np.array([[NAN, 1.0, NAN], [1.0, 0.0, 1.0], [NAN, 1.0, 0.0]])
    tells(str(incomplete(times, "x")), "site 1 to 3", "2")
