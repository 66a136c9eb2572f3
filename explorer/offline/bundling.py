"""The page's modules as one script: browsers load no modules from a disk.

Takes what the page's modules use, and refuses the rest: imports of names or of a whole module at
the top of a file, and exports of functions, classes and constants in front of their definitions.
"""

from __future__ import annotations

import re
from pathlib import Path

_IMPORT = re.compile(
    r"^import\s+(?:(?P<names>\{[^}]*\}|\*\s+as\s+\w+)\s+from\s+)?"
    r'"\./(?P<module>[\w.]+)";$',
    re.M,
)
_IMPORTED = re.compile(r"[{,]\s*(\w+)")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.M)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\s*\(.*|\bimport\.meta\b.*", re.M)


def bundle(folder: Path, entry: str) -> str:
    """A script that runs the module `entry` after all modules that it imports, each once.

    Raises: ValueError for imports in a circle or of what is not exported, and for syntax that it
    does not know.
    """
    parts: dict[str, str] = {}
    _add(folder, entry, parts, {}, ())
    return '"use strict";\n(() => {\nconst modules = {};\n' + "".join(parts.values()) + "})();\n"


def _add(
    folder: Path,
    name: str,
    parts: dict[str, str],
    exported: dict[str, list[str]],
    above: tuple[str, ...],
) -> None:
    if name in above:
        raise ValueError(f"modules import each other in a circle: {' → '.join([*above, name])}")
    if name in parts:
        return
    source = (folder / name).read_text("utf-8")
    for match in _IMPORT.finditer(source):
        _add(folder, match["module"], parts, exported, (*above, name))
        for imported in _IMPORTED.findall(match["names"] or ""):
            # The browser would say so of a module; of an object's member it says nothing.
            if imported not in exported[match["module"]]:
                raise ValueError(f"{name}: {match['module']} does not export {imported}")
    names = exported[name] = _EXPORT.findall(source)
    body = _EXPORT.sub("", _IMPORT.sub(_binding, source))
    if other := _OTHER.search(body):
        raise ValueError(f"{name}: cannot bundle '{other[0]}'")
    parts[name] = f'modules["{name}"] = (() => {{\n{body}return {{ {", ".join(names)} }};\n}})();\n'


def _binding(match: re.Match[str]) -> str:
    if match["names"] is None:
        return ""
    names = re.sub(r"\*\s+as\s+", "", match["names"]).replace(" as ", ": ")
    return f'const {names} = modules["{match["module"]}"];'
