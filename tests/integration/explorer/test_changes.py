"""The page's merging of what has changed in a run, against the whole answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.explorer.conftest import Looking
from tests.unit.explorer.test_changes import grown
from vizpub.explorer.changes import find_changes

pytestmark = pytest.mark.browser

MERGE = """async ([old, changes]) => {
  const typed = (arrays) => Object.fromEntries(Object.entries(arrays).map(([name, values]) =>
    [name, name === "times" ? Float64Array.from(values) : Int32Array.from(values)]));
  const { merge } = await import("/changes.js");
  const merged = merge(typed(old), typed(changes));
  return Object.fromEntries(Object.entries(merged).map(([name, values]) => [name, [...values]]));
}"""


def test_page_makes_the_new_answer_of_the_old(look: Callable[..., Looking]) -> None:
    looking = look()
    looking.page.goto(looking.address)
    for seed in range(4):
        old, new = grown(seed, closes=seed % 2 == 0)
        changes = find_changes(old, new)
        assert changes is not None
        given = [{name: values.tolist() for name, values in of.items()} for of in (old, changes)]
        merged = looking.page.evaluate(MERGE, given)
        assert merged == {name: values.tolist() for name, values in new.items()}
