"""The plans of a small ingest: other plans of Spark cost a test more than all of its work.

tests/integration/test_scale.py checks that both give the same result, and so does `make test-long`,
which runs the tests again with VIZPUB_TEST_PLANS=large.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vizpub.ingest.spark.scale import restore_spark, tune_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def as_of_small(spark: SparkSession) -> Iterator[None]:
    """Inside the block the session has an ingest's settings for a small input.

    With VIZPUB_TEST_PLANS=large it keeps its own.
    """
    before = tune_spark(spark, small=os.environ.get("VIZPUB_TEST_PLANS") != "large")
    try:
        yield
    finally:
        restore_spark(spark, before)
