"""The Python that Spark's executors run."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def use_this_python(spark: SparkSession) -> None:
    """Executors on this machine run this very Python, unless PYSPARK_PYTHON names another."""
    here = str(spark.sparkContext.master).startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))
    if here and "PYSPARK_PYTHON" not in os.environ:
        # Spark would take the first python3 on the path, which need not have what our functions import.
        spark.sparkContext.pythonExec = sys.executable
