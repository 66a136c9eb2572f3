"""The version of vizpub that runs."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("vizpub")
except PackageNotFoundError:
    __version__ = "from a checkout"
