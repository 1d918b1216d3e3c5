"""Spark event logs as plain lines: Spark's own codecs are undone by Spark's own reader."""

from __future__ import annotations

from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput
from penstock.pipeline.head import Head


def unpacked(spark: SparkSession, heads: tuple[Head, ...], scratch: Path) -> list[Path]:
    """The logs as text files; what is already text stays where it is."""
    return [
        begin.path if _is_text(begin) else _copy(spark, begin, scratch / f"{i}.log") for i, begin in enumerate(heads)
    ]


def _is_text(begin: Head) -> bool:
    return begin.codec is None or begin.codec == "gzip"


def _copy(spark: SparkSession, begin: Head, flat: Path) -> Path:
    """Copied by the JVM, stream to stream: nothing of it is held in memory or passes through Python."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    codecs = jvm.org.apache.spark.io.CompressionCodec
    codec = codecs.createCodec(spark.sparkContext._jsc.sc().conf(), begin.codec)
    raw = jvm.java.io.FileInputStream(str(begin.path))
    out = jvm.java.io.FileOutputStream(str(flat))
    try:
        # "Continuous" also reads a log whose last frame is still open, as a running application has it.
        codec.compressedContinuousInputStream(raw).transferTo(out)
    except Py4JJavaError as error:
        if not begin.path.name.endswith(".inprogress") or flat.stat().st_size == 0:
            raise BadInput(f"{begin.path}: the {begin.codec} data are truncated or damaged") from error
    finally:
        out.close()
        raw.close()
    return flat
