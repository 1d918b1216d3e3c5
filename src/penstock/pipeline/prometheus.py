"""Prometheus range dumps: increases of counters, or rates."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from penstock.core.errors import BadInput
from penstock.pipeline.reading import Reading, names, none
from penstock.pipeline.recognise import Source
from penstock.pipeline.request import TraceRequest
from penstock.pipeline.spacing import fit
from penstock.pipeline.store import stored

_RESULT = "array<struct<metric:map<string,string>,values:array<array<string>>>>"
_SCHEMA = f"status string, error string, data struct<resultType:string,result:{_RESULT}>"
_COUNTER = r"_(total|count)$"


def read_prometheus(spark: SparkSession, source: Source, request: TraceRequest, scratch: Path) -> Reading:
    """Arrivals between each two samples of a counter, or in the step before each sample of a rate."""
    documents = spark.read.schema(_SCHEMA).json(names(source.paths), multiLine=True)
    kept = stored(sampled(documents), scratch / "samples")
    good = with_before(kept.where(fn.col("reason").isNull()))
    meaning, notes = _meaning(kept, request)
    step_us = _step_us(good, request)
    found = increases(good, step_us) if meaning == "counter" else amounts(good, step_us)
    counted = kept.select(*_no_span(), "reason", fn.lit(1).cast("bigint").alias("lines"))
    grown = found.select("*", none("string").alias("reason"), fn.lit(0).cast("bigint").alias("lines"))
    bad = kept.where(fn.col("reason").isNotNull()).select("reason", "file", "line")
    return Reading(counted.unionByName(grown), bad, notes=notes)


def sampled(documents: DataFrame) -> DataFrame:
    """One row a sample: series, name, at, value; or the sample and a reason."""
    file = fn.col("_metadata.file_path").alias("file")
    each = documents.select(fn.explode("data.result").alias("series"), file)
    points = each.select("series.metric", fn.explode("series.values").alias("point"), "file")
    value = fn.get("point", fn.lit(1)).try_cast("double")
    at = fn.round(fn.get("point", fn.lit(0)).try_cast("double") * 1e6).try_cast("bigint")
    return points.select(
        fn.to_json(fn.array_sort(fn.map_entries("metric"))).alias("series"),
        fn.element_at("metric", "__name__").alias("name"),
        at.alias("at"),
        value.alias("value"),
        _reason(at, value).alias("reason"),
        "file",
        fn.to_json(fn.struct("metric", "point")).alias("line"),
    )


def with_before(samples: DataFrame) -> DataFrame:
    """The samples with the one before in their series; the same sample in two files counts once."""
    once = samples.groupBy("series", "at").agg(fn.max("value").alias("value"))
    ordered = Window.partitionBy("series").orderBy("at")
    before = fn.lag("at").over(ordered).alias("before")
    return once.select("*", before, fn.lag("value").over(ordered).alias("value_before"))


def increases(samples: DataFrame, step_us: int) -> DataFrame:
    """What a counter grew by from sample to sample; after a reset it counts from 0."""
    growth = fn.col("value") - fn.col("value_before")
    since = fn.when(growth < 0, fn.col("value")).otherwise(growth)
    # Half a step of lateness is a late scrape; more is a sample that is missing, which is a hole.
    is_next = fn.col("at") - fn.col("before") <= fn.lit(step_us * 3 // 2)
    return samples.where(is_next).select(
        fn.col("before").alias("begin"), fn.col("at").alias("end"), since.alias("arrivals")
    )


def amounts(samples: DataFrame, step_us: int) -> DataFrame:
    """What a rate amounts to in the step that ends at its sample: rate() looks back."""
    begin = (fn.col("at") - fn.lit(step_us)).alias("begin")
    return samples.select(begin, fn.col("at").alias("end"), (fn.col("value") * (step_us / 1e6)).alias("arrivals"))


def _meaning(samples: DataFrame, request: TraceRequest) -> tuple[str, tuple[str, ...]]:
    if request.values is not None:
        return request.values, ()
    name = fn.col("name")
    kind = fn.when(name.isNull(), "rate").when(name.rlike(_COUNTER), "counter").otherwise("unknown")
    kinds = {
        row["kind"]: row["name"]
        for row in samples.groupBy(kind.alias("kind")).agg(fn.min("name").alias("name")).collect()
    }
    if not kinds:
        raise BadInput(f"{request.source}: holds no samples (an empty result, or JSON that is not whole)")
    if set(kinds) == {"counter"}:
        return "counter", ()
    if set(kinds) == {"rate"}:
        return "rate", ("the samples have no name: taken for the result of rate(), in events per second",)
    odd = kinds.get("unknown") or kinds["counter"]
    raise BadInput(
        f"{request.source}: whether '{odd}' is a counter or a rate is not certain: "
        "pass --values counter (it only grows) or --values rate (events per second)"
    )


def _step_us(samples: DataFrame, request: TraceRequest) -> int:
    if request.step_s is not None:
        return round(request.step_s * 1e6)
    found = samples.agg(fn.min(fn.col("at") - fn.col("before")).alias("step")).first()
    if found is None or found["step"] is None:
        raise BadInput(f"{request.source}: one sample a series does not show the step: pass --step")
    fit(found["step"], request, "the samples", evenly=False)
    return int(found["step"])


def _reason(at: Column, value: Column) -> Column:
    return (
        fn.when(at.isNull(), "the time is not a number")
        .when(value.isNull(), "the value is not a number")
        .when(fn.isnan(value) | (fn.abs(value) == float("inf")), "the value is not finite")
        .when(value < 0, "the value is negative")
    )


def _no_span() -> list[Column]:
    return [none("bigint").alias("begin"), none("bigint").alias("end"), none().alias("arrivals")]
