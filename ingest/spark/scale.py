"""The size of an input, and Spark's settings for it.

A small input is read and folded by one task. What makes a large input fast (compiled plans,
adaptive execution, shuffles) costs a small one more than all of its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_INPUT = 8 * 2**20
"""Bytes of packed lines below which an input is small."""
SMALL_RUN = 500_000
"""Rows that an append may read of its run and still be small."""
QUICK_START = 64 * 2**20
"""Bytes of packed lines below which Java's start costs more than its full compiler saves."""

_OF_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings for a small input: compiling its plans, or adapting them, takes longer than they run."""


def is_small(size: int) -> bool:
    """Return True if an input of `size` bytes of compressed lines is small."""
    return size <= SMALL_INPUT


def tune_spark(spark: SparkSession, small: bool) -> dict[str, str | None]:
    """Apply the settings for a small run. Return the old settings, for `restore_spark`."""
    old_settings = {key: spark.conf.get(key, None) for key in _OF_SMALL}
    if small:
        restore_spark(spark, dict(_OF_SMALL))
    return old_settings


def restore_spark(spark: SparkSession, settings: dict[str, str | None]) -> None:
    """Set the settings that have a value, and unset the others."""
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
