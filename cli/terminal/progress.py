"""How far long work is, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from model.progress import Progress


@contextmanager
def bar(*, color: bool = True) -> Iterator[Progress]:
    """A bar per step for the length of the block; a total of 0 is shown as not known."""
    import rich.progress as rp
    from rich.console import Console

    columns = (
        rp.SpinnerColumn(finished_text="✓"),
        rp.TextColumn("{task.description}", markup=False),
        rp.BarColumn(),
        rp.TaskProgressColumn(),
        rp.TimeElapsedColumn(),
        rp.TimeRemainingColumn(),
        rp.TextColumn("{task.fields[note]}", markup=False),
    )
    console = Console(stderr=True, no_color=not color)
    with rp.Progress(*columns, console=console, transient=True) as display:
        tasks: dict[str, rp.TaskID] = {}

        def show(step: str, done: int, total: int, note: str = "") -> None:
            if step not in tasks:
                for earlier in tasks.values():
                    display.stop_task(earlier)
                tasks[step] = display.add_task(step, total=None, note="")
            display.update(tasks[step], completed=done, total=total or None, note=note)

        yield show


def line_per_step(say: Callable[[str], None]) -> Progress:
    """Say the name of each step once, when it begins: for logs and pipes."""
    begun: set[str] = set()

    def show(step: str, done: int, total: int, note: str = "") -> None:
        if step not in begun:
            begun.add(step)
            say(step)

    return show
