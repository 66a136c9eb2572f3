"""Which files of a path are taken together."""

from __future__ import annotations

import pytest

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.inventory import _check_encodings
from vizpub.model.errors import InputError


def test_parts_of_a_table_are_one_trace_and_another_form_of_it_is_not() -> None:
    """Only the first part of a table that was split has its header."""
    parts = [
        InputFile("in/p0.csv", "commas below a header(src,dst)", 1, "a"),
        InputFile("in/p1.csv", "commas(src,dst)", 1, "b"),
    ]
    _check_encodings("in", parts)
    with pytest.raises(InputError, match="Parquet"):
        _check_encodings("in", [*parts, InputFile("in/p.parquet", "Parquet", 1, "c")])
