"""Modules of users, from files."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def module_of_file(path: Path) -> ModuleType:
    """The module in a file `.py`, under the name of the file; imported once.

    Raises: FileNotFoundError, and what the module raises.
    """
    name = path.stem
    spec = spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    if (known := sys.modules.get(name)) and known.__file__ == str(path.resolve()):
        return known
    module = module_from_spec(spec)
    module.__file__ = str(path.resolve())
    sys.modules[name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module
