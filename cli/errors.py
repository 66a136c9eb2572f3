"""Errors become a line on stderr and an exit code, here and nowhere else.

0 done · 1 failed · 2 wrong use · 3 a service cannot be reached · 130 interrupted
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from cli.text import printable_lines
from model.errors import VizpubError

INTERRUPTED = 130


class CommandGroup(TyperGroup):
    """The group of all commands; what a command raises ends here."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the code of what went wrong."""
        try:
            result = super().invoke(ctx)
            with standard_output() as out:
                out.flush()
        except (typer.Exit, typer.Abort):
            raise
        except typer.TyperException as error:
            error.message += _misplaced(error, ctx)
            raise
        except KeyboardInterrupt:
            _tell("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(0) from None  # the reader took what it wanted
        except Exception as error:
            raise typer.Exit(report(error, debug=bool(ctx.params.get("debug")))) from None
        return result


def _misplaced(error: typer.TyperException, ctx: Any) -> str:
    """Where an option stands that the command lacks and `vizpub` has."""
    name = getattr(error, "option_name", None)
    for option in ctx.command.params:
        if name in option.opts:
            words = filter(None, ["vizpub", name, option.metavar, ctx.invoked_subcommand, "…"])
            return f"\nGlobal options stand before the command: {' '.join(words)}"
    return ""


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Where data goes that no file was named for.

    Raises: VizpubError where it cannot be written.
    """
    try:
        yield sys.stdout
    except BrokenPipeError:
        raise
    except OSError as error:
        _forget_stdout()
        raise VizpubError(f"cannot write to standard output: {error.strerror}") from error


def report(error: Exception, *, debug: bool = False) -> int:
    """Tell the error on stderr. Returns the exit code it stands for."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, VizpubError):
        _tell(f"error: {error}")
        return error.exit_code
    hint = "" if debug else " (vizpub --debug shows more)"
    _tell(f"unexpected {type(error).__name__}: {_first_line(error)}{hint}")
    return 1


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no message")


def _tell(text: str) -> None:
    print(printable_lines(text), file=sys.stderr)


def _forget_stdout() -> None:
    # Python flushes stdout once more at exit and would complain about the closed pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
