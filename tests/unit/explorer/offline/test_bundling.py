"""One script from modules, as far as text shows it; browsers run it in the integration tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vizpub.explorer.offline.bundling import bundle
from vizpub.explorer.server.web import PAGE

MODULES = {
    "entry.js": 'import "./side.js";\nimport * as sums from "./sums.js";\n'
    'import { plain as shown, double } from "./sums.js";\nconst one = 1;\n'
    "console.log(sums.double(4), shown, double(one));\n",
    "side.js": 'import { later } from "./sums.js";\nconst one = "side";\n'
    "console.log(one);\nlater().then(() => {});\n",
    "sums.js": "const factor = 2; // export const hidden\n"
    'export const plain = "export function";\n'
    "export function double(value) {\n  return factor * value;\n}\n"
    "export async function later() {\n  return 1;\n}\nexport class Sum {}\n",
}


def written(folder: Path, **changed: str) -> Path:
    for name, source in (MODULES | {f"{name}.js": text for name, text in changed.items()}).items():
        (folder / name).write_text(source, "utf-8")
    return folder


def test_modules_come_once_and_after_those_that_they_import(tmp_path: Path) -> None:
    script = bundle(written(tmp_path), "entry.js")
    assert re.findall(r'^modules\["(.*?)"\] = ', script, re.M) == ["sums.js", "side.js", "entry.js"]
    assert 'const { plain: shown, double } = modules["sums.js"];' in script
    assert 'const sums = modules["sums.js"];' in script
    assert "return { plain, double, later, Sum };" in script


@pytest.mark.parametrize(
    "source",
    [
        'import sums from "./sums.js";\n',
        'import { double } from "elsewhere";\n',
        'const more = await import("./sums.js");\n',
        "export default 1;\n",
        "export let count = 0;\n",
        "const one = 1;\nexport { one };\n",
        "console.log(import.meta.url);\n",
    ],
)
def test_syntax_that_it_does_not_know_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(ValueError, match=r"entry\.js: cannot bundle"):
        bundle(written(tmp_path, entry=source), "entry.js")


def test_import_of_what_is_not_exported_is_refused(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        entry='import { one, two } from "./side.js";\n',
        side="export const one = 1, two = 2;\n",
    )
    with pytest.raises(ValueError, match=r"side\.js does not export two"):
        bundle(folder, "entry.js")


def test_circle_of_imports_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, side='import "./entry.js";\n')
    with pytest.raises(ValueError, match=r"entry\.js → side\.js → entry\.js"):
        bundle(folder, "entry.js")


def test_page_has_no_import_or_export_left() -> None:
    script = bundle(PAGE, "exported.js")
    assert not re.search(r"^\s*(import|export)\b", script, re.M)
    assert script.count('modules["main.js"] =') == 1
