"""The facts of messages: names, paths, numbers and options, without the sentence around them."""

from __future__ import annotations

import re

from vizpub.model.errors import RunNotComplete, UnknownName


def naming(*parts: object) -> str:
    """A pattern, as for `match=`, of texts that have all parts in any order, as whole words."""
    return "(?s)" + "".join(f"(?=.*{_whole(str(part))})" for part in parts)


def tells(text: str, *parts: object) -> None:
    """Check that the text has all parts, as whole words."""
    lacking = [part for part in parts if not re.search(_whole(str(part)), text)]
    assert not lacking, f"{lacking} not in: {text}"


def unknown(kind: str, name: str, *near: str) -> str:
    """What an error says of an unknown name, up to the names it is near to."""
    return str(UnknownName(kind, name, near)).removesuffix("?")


def unfinished(run: str, state: str) -> str:
    """What an error says of a run that is not complete, up to the command that resumes it."""
    return str(RunNotComplete(run, state, "")).rstrip()


def _whole(part: str) -> str:
    """A pattern of the part where it is not in the middle of a word or number."""
    before = r"(?<!\w)" if re.match(r"\w", part) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", part) else ""
    return before + re.escape(part) + after
