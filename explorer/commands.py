"""Names as commands, SQL and Cypher take them, in what the page prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence


def shell_command(words: Sequence[str], names: Sequence[str] = ()) -> str:
    """A command as a shell takes it; names that begin with a dash are no options."""
    dashed = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join([*words, *dashed, *names])


def sql_text(text: str) -> str:
    """A text as it stands in SQL."""
    return "'" + text.replace("'", "''") + "'"


def cypher_text(text: str) -> str:
    """A text as it stands in Cypher."""
    return json.dumps(text, ensure_ascii=False)
