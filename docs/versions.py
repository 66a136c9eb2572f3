"""Publish the built site beside those of other versions: `python docs/versions.py FOLDER`.

Each version has a folder of that name. All get the list of them, and FOLDER leads to the newest.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from packaging.version import Version

from vizpub.model.version import __version__

SITE = Path(__file__).parents[1] / "vizpub" / "site"
LIST = "_static/versions.js"


def publish(site: Path, folder: Path, version: str) -> list[str]:
    """Put the site into the folder, and return all versions there, the newest first."""
    place = folder / version
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(site, place)
    names = (path.parents[1].name for path in folder.glob(f"*/{LIST}"))
    versions = sorted(names, key=Version, reverse=True)
    for name in versions:
        (folder / name / LIST).write_text(f"const VERSIONS = {json.dumps(versions)};\n", "utf-8")
    newest = next((name for name in versions if not Version(name).is_prerelease), versions[0])
    refresh = f'<meta http-equiv="refresh" content="0; url={newest}/docs/index.html">\n'
    (folder / "index.html").write_text(refresh, "utf-8")
    return versions


if __name__ == "__main__":
    print(*publish(SITE, Path(sys.argv[1]), __version__))
