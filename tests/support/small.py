"""Plans as plain as those of a small ingest: Spark's others cost a test more than all of its work.

That both say the same is held by tests/integration/test_scale.py, and by `make test-long`, which
runs the tests once more with VIZPUB_TEST_PLANS=large.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ingest.spark.scale import restore, tune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def as_of_small(spark: SparkSession) -> Iterator[None]:
    """In the block the session is told what an ingest tells it of a small input.

    With VIZPUB_TEST_PLANS=large it is told nothing.
    """
    before = tune(spark, small=os.environ.get("VIZPUB_TEST_PLANS") != "large")
    try:
        yield
    finally:
        restore(spark, before)
