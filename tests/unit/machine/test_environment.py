"""Variables that are set for a block."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from vizpub.machine.environment import environment


def test_variables_are_as_before_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_KNOWN", "before")
    monkeypatch.delenv("VIZPUB_NEW", raising=False)
    variables = {"VIZPUB_KNOWN": "inside", "VIZPUB_NEW": "1"}
    with suppress(KeyboardInterrupt), environment(variables):
        assert variables.items() <= os.environ.items()
        raise KeyboardInterrupt
    assert os.environ["VIZPUB_KNOWN"] == "before"
    assert "VIZPUB_NEW" not in os.environ
