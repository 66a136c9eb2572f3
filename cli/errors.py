"""Turn errors into a line on stderr and an exit code.

0 done · 1 failed · 2 wrong use · 3 a service cannot be reached · 130 interrupted · 131 quit ·
143 terminated
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from types import FrameType
from typing import Any

import typer

from vizpub.cli.terminal.help import HelpfulGroup
from vizpub.cli.terminal.streams import CLOSED, STYLE, is_closed, message, prepare, standard_output
from vizpub.model.errors import VizpubError

NO_MEMORY = "not enough memory: ask for less at once"
_ENDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGQUIT: "quit"}


class _SignalReceived(BaseException):
    """A signal that ends the process; raised like KeyboardInterrupt, so that blocks clean up."""

    def __init__(self, number: int) -> None:
        self.word, self.exit_code = _ENDS[signal.Signals(number)], 128 + number
        super().__init__(self.word)


class CommandGroup(HelpfulGroup):
    """The group of all commands; handles what a command raises, and signals."""

    _signal: signal.Signals | None = None
    """The last one that was raised. A library may wrap it in an error of its own."""
    _in_command = False

    def main(self, *words: Any, **more: Any) -> Any:
        """Run the program; see typer."""
        prepare()
        self._signal = None
        try:
            with raising_signals(self._raise):
                return self._run_typer(*words, **more)
        except _SignalReceived as received:
            message(received.word, "error", exit_code=received.exit_code)
            sys.exit(received.exit_code)
        finally:
            STYLE.json = False

    def _raise(self, number: int) -> None:
        """Raise what ends the command: KeyboardInterrupt too, which typer ends without a word."""
        self._signal = signal.Signals(number)
        if self._in_command and number == signal.SIGINT:
            raise KeyboardInterrupt
        raise _SignalReceived(number)

    def _run_typer(self, *words: Any, **more: Any) -> Any:
        """Run typer's main; its own output (help, version) can fail as well."""
        try:
            try:
                return super().main(*words, **more)
            except SystemExit:
                _flush()
                raise
            except OSError as error:
                if error.filename is not None:  # not of a stream
                    sys.exit(report(error))
                with standard_output():
                    raise error from None
        except typer.Exit as done:
            sys.exit(done.exit_code)
        except VizpubError as error:
            sys.exit(report(error))

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the exit code of the error."""
        self._in_command = True
        try:
            result = super().invoke(ctx)
            _flush()
        except (typer.Exit, typer.Abort):
            raise
        except typer.TyperException as error:
            # "Value error" is how typer's checks begin what they say.
            error.message = error.message.removeprefix("Value error, ") + _placement_hint(
                error, ctx
            )
            if not STYLE.json:
                raise
            message(error.format_message(), "error", exit_code=error.exit_code)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            raise _SignalReceived(signal.SIGINT) from None
        except BrokenPipeError as error:  # while typer prints help
            with standard_output():
                raise error from None
        except Exception as error:
            if self._signal:
                raise _SignalReceived(self._signal) from None
            if isinstance(error, UnsupportedOperation) and is_closed(sys.stdout):
                error = VizpubError(CLOSED)  # of a line that is printed as it is
            raise typer.Exit(report(error, debug=bool(ctx.params.get("debug")))) from None
        finally:
            self._in_command = False
        return result


def _placement_hint(error: typer.TyperException, ctx: Any) -> str:
    """A hint if global options were given after the command; otherwise empty."""
    name = getattr(error, "option_name", None)
    for option in ctx.command.params:
        if name in option.opts:
            words = filter(None, ["vizpub", name, option.metavar, ctx.invoked_subcommand, "…"])
            return f"\nGlobal options come before the command: {' '.join(words)}"
    return ""


def _flush() -> None:
    """Write all buffered data. Raises: as standard_output."""
    if not is_closed(sys.stdout):
        with standard_output():
            pass


@contextmanager
def raising_signals(end: Callable[[int], None]) -> Iterator[None]:
    """Call `end`, which raises, in the block for signals that end the process.

    A second SIGTERM or SIGQUIT ends it at once. Signals that the parent process ignores, or that
    have a handler of their own, are left alone.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        end(number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    usual = (signal.SIG_DFL, signal.default_int_handler)
    handlers = {
        number: handler
        for number in _ENDS
        if in_main_thread and (handler := signal.getsignal(number)) in usual
    }
    for number in handlers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def report(error: Exception, *, debug: bool = False) -> int:
    """Print the error on stderr; return its exit code."""
    fields: dict[str, Any] = {"error": type(error).__name__}
    if debug and STYLE.json:
        fields["traceback"] = "".join(traceback.format_exception(error))
    elif debug:
        traceback.print_exception(error)
    code, prefix = 1, "error: "
    if isinstance(error, VizpubError):
        text, code = str(error), error.exit_code
    elif isinstance(error, MemoryError):
        text = NO_MEMORY
    else:
        first_line = next(iter(str(error).splitlines()), "no message")
        hint = "" if debug else " (vizpub --debug shows more)"
        text, prefix = f"unexpected {type(error).__name__}: {first_line}{hint}", ""
    message(text, "error", prefix=prefix, exit_code=code, **fields)
    return code
