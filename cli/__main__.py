"""Where the program `vizpub` begins."""

import gc


def main() -> None:
    """Run the command that was given.

    What is imported stays, and to look for garbage in it would be a tenth of a short command.
    """
    gc.disable()
    from cli.main import app

    gc.freeze()
    gc.enable()
    app()


if __name__ == "__main__":
    main()
