"""Sizes, as written and as told."""

from __future__ import annotations

import pytest

from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.model.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size", "told"),
    [
        ("1", 1, "1 byte"),
        ("5000 B", 5000, "5,000 bytes"),
        ("64MB", 67_108_864, "64 MB"),
        ("1.5 mb", 1_572_864, "1536 kB"),
        ("2k", 2048, "2 kB"),
        ("1GB", 1_073_741_824, "1 GB"),
    ],
)
def test_size_is_read_and_told(text: str, size: int, told: str) -> None:
    assert (parse_size(text), format_size(size)) == (size, told)


@pytest.mark.parametrize("text", ["", "0", "-1", "MB", "1TB", "64 M B", "1e6", "0.1", "1\n2"])
def test_text_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UseError, match=naming(f"'{text}'", "64MB")):
        parse_size(text)
