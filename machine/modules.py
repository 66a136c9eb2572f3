"""Modules that may be missing: those of users, in files, and those of vizpub's extras."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution
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
        raise UseError(f"{use} needs the extra '{extra}': {_installation(extra)}") from error


def _installation(extra: str) -> str:
    """The line that installs an extra where this Python has its packages from."""
    prefix, wanted = Path(sys.prefix), f"'vizpub[{extra}]'"
    if "pipx" in prefix.parts:
        return f"pipx runpip vizpub install {wanted}"
    is_tool = (prefix / "uv-receipt.toml").exists()
    # uvx keeps the environments that it makes in uv's cache, which has this file as caches have.
    is_cached = any((above / "CACHEDIR.TAG").exists() for above in prefix.parents)
    if not (is_tool or is_cached):
        return f"pip install {wanted}"
    with suppress(PackageNotFoundError):  # uv resolves anew: from the file that it has vizpub from
        origin = json.loads(distribution("vizpub").read_text("direct_url.json") or "{}")
        wanted = f"'vizpub[{extra}] @ {origin['url']}'" if "url" in origin else wanted
    return f"uv tool install --with {wanted} vizpub" if is_tool else f"uvx --with {wanted} vizpub …"
