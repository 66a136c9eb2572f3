"""The PNG of a view: what the page draws, in the size that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.integration.explorer.conftest import Looking
from tests.support.few import few
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
SCREENS = {
    "overlay": "size=betweenness&sel=3",
    "message": "m=2",
    "compare": "with=intervals&by=interval&at=11",
}
BUTTONS = 70
"""Pixels at the right of a stage that its buttons hide."""
Pixels = np.ndarray


def save(page: Page, scale: int) -> tuple[str, Pixels]:
    """Save the picture: the name of the file, and its pixels (height, width, 3)."""
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG" if scale == 1 else "PNG, 2×", exact=True).click()
    file = download.value
    return file.suggested_filename, read_pixels(Path(file.path()).read_bytes())


def read_pixels(content: bytes) -> Pixels:
    image = Image.open(BytesIO(content))
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB")).astype(int)


def drawn(page: Page) -> tuple[Pixels, int]:
    """The stage without its buttons, as the page shows it, and its height."""
    boxes = [one.bounding_box() or {} for one in page.locator(".stage").all()]
    left, top = (min(box[side] for box in boxes) for side in ("x", "y"))
    clip = {"x": left, "y": top, "width": boxes[0]["width"] - BUTTONS, "height": boxes[0]["height"]}
    return read_pixels(page.screenshot(clip=clip)), int(boxes[0]["height"])


@pytest.mark.parametrize("screen", few(SCREENS, ["compare"]))
def test_png_has_what_the_page_draws(look: Look, plays: dict[str, Played], screen: str) -> None:
    page = look(viewport={"width": 1200, "height": 760}).open("hours", SCREENS[screen], screen)
    page.locator(".save summary").click()
    name, once = save(page, 1)
    assert re.fullmatch(r"hours.*\.png", name)
    _, twice = save(page, 2)
    assert np.abs(np.subtract(twice.shape[:2], np.multiply(2, once.shape[:2]))).max() <= 1
    shown, height = drawn(page)
    part = once[: shown.shape[0], : shown.shape[1]]
    ground = once[height // 2, -1]
    inked = np.abs(shown - ground).sum(axis=2) > 60
    assert inked.mean() > 0.001  # there is something to compare
    alike = np.abs(part - shown).sum(axis=2) < 120
    assert alike.mean() > 0.98
    assert alike[inked].mean() > 0.6  # edges are smoothed in one of them
    small = np.asarray(
        Image.fromarray(twice.astype(np.uint8)).resize(once.shape[1::-1], Image.Resampling.BOX)
    )
    assert np.abs(small - once).mean() < 4
    legend = once[:height, -200:]
    caption = once[height:]
    assert all((np.abs(of - ground).sum(axis=2) > 100).any() for of in (legend, caption))


def test_png_of_another_time_is_another(look: Look, plays: dict[str, Played]) -> None:
    looking = look()
    page = looking.open("intervals", "t=8")
    page.locator(".save summary").click()
    early, (height, width, _) = save(page, 1)[1], drawn(page)[0].shape
    looking.state(t=40)
    late = save(page, 1)[1]
    assert (early[:height, :width] != late[:height, :width]).any()


def test_png_of_an_exported_file_needs_nobody(look_at: Look, export: Callable[..., Path]) -> None:
    page = look_at(export("intervals"), color_scheme="dark").open("intervals")
    page.locator(".save summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    pixels = read_pixels(Path(download.value.path()).read_bytes())
    shown, _ = drawn(page)
    assert pixels.shape[1] > shown.shape[1]
    part = pixels[: shown.shape[0], : shown.shape[1]]
    assert (np.abs(part - pixels[0, 0]).sum(axis=2) > 60).any()
