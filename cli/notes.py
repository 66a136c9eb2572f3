"""Log records of vizpub's own code, shown to the user."""

from __future__ import annotations

import logging

from cli.settings import Settings


class _Say(logging.Handler):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def emit(self, record: logging.LogRecord) -> None:
        self._settings.say(record.getMessage())


def show_notes(settings: Settings) -> None:
    """From here on, what is logged is said; with --debug also what matters less."""
    logger = logging.getLogger("ingest")
    logger.handlers = [_Say(settings)]
    logger.setLevel(logging.INFO if settings.debug else logging.WARNING)
    logger.propagate = False
