"""The command line. A command parses its arguments, calls one function of a package and prints.

In: arguments and environment variables. Out: data on stdout, messages on stderr, an exit code.
`vizpub.cli.main.app` is the application; `vizpub.cli.__main__.main` runs it.
"""
