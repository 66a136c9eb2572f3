"""Films: figures one after the other, as GIF, WebM or MP4.

Pillow writes GIFs. WebM and MP4 need ffmpeg, which runs as a process of its own: the one on the
PATH, or that of the extra `video`. Frames come one by one, and only a GIF's are kept until its end.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vizpub.analytics.figures.canvas import without_glyph_warnings
from vizpub.analytics.figures.styles import figure_style
from vizpub.analytics.options import FILM_FPS, FILM_SIZE
from vizpub.machine.modules import needing_extra
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

FILM_FORMATS = ("gif", "webm", "mp4")
NO_FFMPEG = "(not a .gif) without ffmpeg on the PATH"
_DPI = 128  # a power of two, so that no size in inches is rounded to a pixel less
_PANEL = (0.05, 0.16, 0.9, 0.73)
"""Left, bottom, width and height of the panel; fitted to each frame by itself, it would jump."""
_CODECS = {
    "webm": ("-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "30", "-row-mt", "1"),
    "mp4": ("-c:v", "libx264", "-crf", "20", "-preset", "medium", "-movflags", "+faststart"),
}

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Film:
    """How a film is written: its format, and frames per second of so many pixels."""

    form: str
    fps: float = FILM_FPS
    width: int = FILM_SIZE[0]
    height: int = FILM_SIZE[1]


def write_film(figures: Iterable[Figure], out: Path, film: Film) -> None:
    """Write the figures as frames of a film.

    Raises: UseError where ffmpeg is needed and missing, or fails.
    """
    write = _write_gif if film.form == "gif" else _write_video
    write((_draw(figure, film) for figure in figures), out, film)


def _draw(figure: Figure, film: Film) -> Pixels:
    """The pixels of a figure; shape (height, width, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_layout_engine("none")
    figure.set_dpi(_DPI)
    figure.set_size_inches(film.width / _DPI, film.height / _DPI)
    figure.axes[0].set_position(_PANEL)
    canvas: Any = FigureCanvasAgg(figure)
    with figure_style(), without_glyph_warnings():
        canvas.draw()
    pixels: Pixels = np.asarray(canvas.buffer_rgba())[: film.height, : film.width, :3]
    return pixels.copy()


def _write_gif(frames: Iterable[Pixels], out: Path, film: Film) -> None:
    images = map(_reduce_colours, frames)
    first = next(images)
    duration = max(round(1000 / film.fps), 20)  # browsers slow down shorter ones
    options = {"append_images": images, "duration": duration, "loop": 0, "disposal": 1}
    with out.open("wb") as file:
        first.save(file, format="GIF", save_all=True, optimize=False, **options)


def _reduce_colours(frame: Pixels) -> Image:
    from PIL import Image

    image = Image.fromarray(frame)
    return image.quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


def _write_video(frames: Iterator[Pixels], out: Path, film: Film) -> None:
    program = find_ffmpeg(film.form)
    size = f"{film.width}x{film.height}"
    command = [
        *(program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size),
        *("-r", f"{film.fps:g}", "-i", "-", *_CODECS[film.form], "-pix_fmt", "yuv420p"),
        *("-bitexact", "-f", film.form, str(out)),
    ]
    first = next(frames)  # what the figures complain of comes before ffmpeg starts
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=complaints)
        assert process.stdin is not None
        try:
            with process.stdin as pipe:
                for frame in chain([first], frames):
                    pipe.write(frame.tobytes())
        except BrokenPipeError:
            pass  # ffmpeg has ended, and says why
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
        if process.returncode:
            complaints.seek(0)
            lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
            raise UseError(f"ffmpeg failed: {lines[-1] if lines else process.returncode}")


def find_ffmpeg(form: str) -> str:
    """The path of ffmpeg. Raises: UseError."""
    if program := which("ffmpeg"):
        return program
    with needing_extra("video", f"a .{form} {NO_FFMPEG}"):
        from imageio_ffmpeg import get_ffmpeg_exe
    try:
        return str(get_ffmpeg_exe())
    except RuntimeError as error:
        raise UseError(f"the ffmpeg of the extra 'video' does not work: {error}") from error
