"""Modules that may be missing: those of users, in files, and those of vizpub's extras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from vizpub.model.errors import UseError


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


@contextmanager
def needing_extra(extra: str, use: str) -> Iterator[None]:
    """Import packages of an extra in the block. `use` begins the error: what needs them.

    Raises: UseError that says how to install the extra if one of them is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        pip = "pipx runpip vizpub" if "pipx" in Path(sys.prefix).parts else "pip"
        text = f"{use} needs the extra '{extra}': {pip} install 'vizpub[{extra}]'"
        raise UseError(text) from error
