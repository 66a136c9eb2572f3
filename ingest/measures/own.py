"""Own metrics by name: FILE.py:NAME, or an entry point `vizpub.metrics` of an installed package."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from vizpub.analytics.comparison.metrics import WHOLE
from vizpub.analytics.own import Own, declared
from vizpub.machine.modules import module_of_file
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.own import LEVELS, OwnMetric, is_taken

IS_TAKEN = (
    "is taken, by a column, a property or a reserved word; give another one: "
    "@vizpub.metric(level=…, name=…)"
)
NOT_DECORATED = "it is not decorated with @vizpub.metric"

GROUP = "vizpub.metrics"
"""The group of entry points."""
_HOW = "FILE.py:NAME, or an entry point of the group vizpub.metrics"


def own_metrics(named: Iterable[str]) -> tuple[Own, ...]:
    """The own metrics of these names, each once.

    Raises: InputError for a file or module that cannot be imported, UnknownName, UseError for a
    function that is not an own metric or has a name that is taken.
    """
    found: dict[str, Own] = {}
    for text in dict.fromkeys(named):
        own = _own_metric(text)
        name = own.metric.name.lower()
        if name in found:
            raise UseError(f"two own metrics have the name '{own.metric.name}'; the second: {text}")
        found[name] = own
    return tuple(found.values())


def _own_metric(text: str) -> Own:
    function = _function(text)
    said = declared(function)
    if said is None or not callable(function):
        raise UseError(f"own metric {text}: {NOT_DECORATED}(level=…)")
    if said.level not in LEVELS:
        raise UnknownName(f"level of own metric {text}:", said.level, sorted(LEVELS))
    if not (said.name.isascii() and said.name.isidentifier()):
        raise UseError(
            f"own metric {text}: '{said.name}' cannot name a column; use letters, digits and '_', "
            "a letter first"
        )
    if is_taken(said.name) or said.name.lower() in {of.name for of in WHOLE}:
        raise UseError(f"own metric {text}: the name '{said.name}' {IS_TAKEN}")
    module = sys.modules[function.__module__]
    metric = OwnMetric(
        said.name,
        said.level,
        (inspect.getdoc(function) or "").partition("\n")[0],
        said.unit,
        inspect.getsource(inspect.unwrap(function)),
        _digest(module),
    )
    return Own(metric, _by_value(function, module, text))


def _function(text: str) -> Callable[..., Any]:
    file, is_file, name = text.rpartition(":")
    if not is_file:
        known = {point.name: point for point in entry_points(group=GROUP)}
        if text not in known:
            raise UnknownName("own metric", text, sorted(known), _HOW)
        entry: Callable[..., Any] = _imported(text, known[text].load)
        return entry
    if not file.endswith(".py"):
        raise InputError(f"own metric {text}: {file or 'nothing'} is not a .py file", _HOW)
    if not Path(file).is_file():
        raise InputError(f"own metric {text}: there is no file {file}")
    module = _imported(text, lambda: module_of_file(Path(file)))
    if not hasattr(module, name):
        there = sorted(key for key, value in vars(module).items() if declared(value))
        raise UnknownName(f"own metric in {file}:", name, there)
    function: Callable[..., Any] = getattr(module, name)
    return function


def _imported(text: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (Exception, SystemExit) as error:  # any: it is the user's code
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"own metric {text}: it cannot be imported: {why}") from error


def _digest(module: ModuleType) -> str:
    content = Path(module.__file__ or "").read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]


def _by_value(function: Callable[..., Any], module: ModuleType, text: str) -> bytes:
    """The function with all of its module that it needs: workers do not have the module."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        code: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:  # what pickling raises depends on the object
        why = f"{type(error).__name__}: {error}"
        raise UseError(f"own metric {text}: it cannot be sent to Spark's workers: {why}") from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return code
