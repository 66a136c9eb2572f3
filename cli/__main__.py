"""The entry point of the program: for `vizpub`, `python -m vizpub.cli` and `spark-submit`."""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

if not __package__:
    # Run as a file: Python would look first in its folder, not where the package `vizpub` is.
    # Links are kept: in a checkout `vizpub/cli` is one.
    sys.path[0] = str(Path(__file__).absolute().parents[2])


def main() -> None:
    """Run the command.

    Imported modules stay loaded; searching them for garbage takes a tenth of a short command.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is there to clean up before a command runs: Ctrl-C prints no traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    from vizpub.cli.main import app

    gc.freeze()
    gc.enable()
    app(prog_name="vizpub")


if __name__ == "__main__":
    main()
