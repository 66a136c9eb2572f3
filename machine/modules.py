"""Modules of users, from files."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def module_of_file(path: Path) -> ModuleType:
    """Import the module in a file `.py` once, under the name of the file.

    Raises: FileNotFoundError, and the module's own errors.
    """
    name = path.stem
    spec = spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    if (imported := sys.modules.get(name)) and imported.__file__ == str(path.resolve()):
        return imported
    module = module_from_spec(spec)
    module.__file__ = str(path.resolve())
    sys.modules[name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    return module
