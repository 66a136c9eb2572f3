"""One value as text: in full for programs, on one safe line for people."""

from __future__ import annotations

import json
import math
from typing import Any

from cli.terminal.text import printable
from model.clock import OPEN


def json_value(value: Any) -> Any:
    """The value with null for what JSON has no number for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value


def plain_text(value: Any) -> str:
    """A value in full: nothing for null, true and false, JSON for what is nested."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, list, tuple, dict)):
        return json.dumps(json_value(value), ensure_ascii=False, default=str)
    return str(value)


def cell_text(value: Any) -> str:
    """A value for people, on one line: '-' for unknown, six digits, 'open' for an open end."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell_text, value))
    if isinstance(value, dict):
        value = json.dumps(json_value(value), ensure_ascii=False, default=str)
    return "open" if value == OPEN else printable(str(value))
