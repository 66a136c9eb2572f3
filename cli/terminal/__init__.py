"""Output of all commands: formats, tables that fit the terminal, and the standard streams.

In: rows (`output.Rows`). Out: text on stdout or in a file. Entry: `output.show`.
"""
