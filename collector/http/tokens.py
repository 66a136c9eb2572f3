"""The three tokens of a collection: to report, to read, and to do anything.

Each is the only line of a file that its owner alone reads. The token to report is valid for all
peers.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path

from vizpub.machine.private import check_private, make_private, read_private, replace_text

REPORT, READ, ADMIN = "report", "read", "admin"
KINDS = (REPORT, READ, ADMIN)


@dataclass
class Tokens:
    """The tokens in a folder; missing and empty ones are made.

    `load` reads them again, so they can be changed while the collector runs. Raises: UseError if
    others can read them.
    """

    folder: Path
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        make_private(self.folder)
        for kind in KINDS:
            # A power cut may have left an empty one.
            if not ((self.folder / kind).exists() and read_private(self.folder / kind).strip()):
                replace_text(self.folder / kind, f"{secrets.token_urlsafe(32)}\n")
        self.load()

    def load(self) -> None:
        """Read all tokens. Raises: UseError, OSError; then the old ones remain valid."""
        check_private(self.folder)
        self._tokens = {kind: read_private(self.folder / kind).strip() for kind in KINDS}

    def allows(self, token: str | None, *kinds: str) -> bool:
        """Return True if a token is of one of these kinds, or the one to do anything."""
        matches = [
            compare_digest(self._tokens[kind].encode(), (token or "").encode())
            for kind in (*kinds, ADMIN)
            if self._tokens[kind]
        ]
        return any(matches)
