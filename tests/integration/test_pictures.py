"""The pictures of the docs are what the commands of their pages draw today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.gallery import PAGES, ROOT, drawn_in

_DIFFERENCE = 0.02
"""The share of pixels that may differ: fonts and layouts differ a little between machines."""


def _pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("L"), dtype=np.int16)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pictures_of_a_page_are_what_its_commands_draw(page: Path, tmp_path: Path) -> None:
    """Otherwise: `make pictures`."""
    command = [sys.executable, "-m", "tests.support.gallery", str(page), "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    differing = {}
    for one in drawn_in(page.read_text("utf-8")):
        if one.path.suffix == ".png":
            kept, drawn = _pixels(one.path), _pixels(tmp_path / one.name)
            assert kept.shape == drawn.shape, one.name
            differing[one.name] = float(np.mean(np.abs(kept - drawn) > 32))
    assert differing
    assert {name: share for name, share in differing.items() if share > _DIFFERENCE} == {}
