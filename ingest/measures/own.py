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

from vizpub.analytics.comparison.metrics import RUN_METRICS
from vizpub.analytics.own import OwnFunction, declaration_of
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


def load_own_metrics(names: Iterable[str]) -> tuple[OwnFunction, ...]:
    """Load the own metrics of these names, each once.

    Raises: InputError for a file or module that cannot be imported; UnknownName; UseError for a
    function that is not an own metric or has a name that is taken.
    """
    by_name: dict[str, OwnFunction] = {}
    for text in dict.fromkeys(names):
        own_metric = _load_own_metric(text)
        name = own_metric.metric.name.lower()
        if name in by_name:
            raise UseError(
                f"two own metrics have the name '{own_metric.metric.name}'; the second: {text}"
            )
        by_name[name] = own_metric
    return tuple(by_name.values())


def _load_own_metric(text: str) -> OwnFunction:
    function = _find_function(text)
    declaration = declaration_of(function)
    if declaration is None or not callable(function):
        raise UseError(f"own metric {text}: {NOT_DECORATED}(level=…)")
    if declaration.level not in LEVELS:
        raise UnknownName(f"level of own metric {text}:", declaration.level, sorted(LEVELS))
    if not (declaration.name.isascii() and declaration.name.isidentifier()):
        raise UseError(
            f"own metric {text}: '{declaration.name}' cannot name a column; use letters, digits "
            "and '_', a letter first"
        )
    if is_taken(declaration.name) or declaration.name.lower() in {
        measure.name for measure in RUN_METRICS
    }:
        raise UseError(f"own metric {text}: the name '{declaration.name}' {IS_TAKEN}")
    module = sys.modules[function.__module__]
    content = Path(module.__file__ or "").read_bytes()
    metric = OwnMetric(
        declaration.name,
        declaration.level,
        (inspect.getdoc(function) or "").partition("\n")[0],
        declaration.unit,
        inspect.getsource(inspect.unwrap(function)),
        hashlib.sha256(content).hexdigest()[:12],
    )
    return OwnFunction(metric, _pickle_by_value(function, module, text))


def _find_function(text: str) -> Callable[..., Any]:
    file, is_file, name = text.rpartition(":")
    if not is_file:
        entry_by_name = {point.name: point for point in entry_points(group=GROUP)}
        if text not in entry_by_name:
            raise UnknownName("own metric", text, sorted(entry_by_name), _HOW)
        entry: Callable[..., Any] = _import(text, entry_by_name[text].load)
        return entry
    if not file.endswith(".py"):
        raise InputError(f"own metric {text}: {file or 'nothing'} is not a .py file", _HOW)
    if not Path(file).is_file():
        raise InputError(f"own metric {text}: there is no file {file}")
    module = _import(text, lambda: module_of_file(Path(file)))
    if not hasattr(module, name):
        declared_names = sorted(key for key, value in vars(module).items() if declaration_of(value))
        raise UnknownName(f"own metric in {file}:", name, declared_names)
    function: Callable[..., Any] = getattr(module, name)
    return function


def _import(text: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (Exception, SystemExit) as error:  # any: it is the user's code
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"own metric {text}: it cannot be imported: {why}") from error


def _pickle_by_value(function: Callable[..., Any], module: ModuleType, text: str) -> bytes:
    """Pickle the function by value with all of its module that it needs: workers lack the
    module.
    """
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
