"""The benchmark applications of papers 1, 2 and 5, and variants that saturate as paper 1's do.

Spark adds up within each task before it shuffles, which removes the single counter and the skewed words that bound
paper 1's applications (§7). The variants put them back: everything through one partition, or every word by itself.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.alternating import all_patterns, coarse_sketch, every_visitor, hot_patterns, sampled_visitors
from penstock.apps.app import App, Variant
from penstock.apps.images import find_cells, find_cells_coarsely
from penstock.apps.inputs import image_rows, labelled_rows, text_lines, web_log
from penstock.apps.queries import candlesticks, hashtags, meter_loads
from penstock.apps.query_inputs import meter_readings, price_ticks, tweets
from penstock.apps.ring_sort import rolling_sort
from penstock.apps.vht import vertical_hoeffding_tree

PATTERN = r"w1[0-9]{2}\b"
WINDOW = "60 seconds"


def word_count(rows: DataFrame) -> DataFrame:
    return _words(rows).groupBy("word").count()


def speed_of_light(rows: DataFrame) -> DataFrame:
    """Each row goes to a partition of its own hash, as from the paper's spout to its bolts: most cross the network."""
    return rows.select("value").repartition("value")


def grep(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("value").rlike(PATTERN)).groupBy().count()


def grep_single(rows: DataFrame) -> DataFrame:
    """One counter for all matches: every match crosses to one partition."""
    matches = rows.where(F.col("value").rlike(PATTERN)).select(F.lit(1).alias("one"), "value")
    return matches.repartition(1).groupBy().agg(F.count("value").alias("count"))


def rolling_count(rows: DataFrame) -> DataFrame:
    return _words(rows).withWatermark("timestamp", "1 minute").groupBy(F.window("timestamp", WINDOW), "word").count()


def rolling_count_skewed(rows: DataFrame) -> DataFrame:
    """Every word goes to its own partition before it is counted: the most frequent one is the bottleneck."""
    words = _words(rows).withWatermark("timestamp", "1 minute").repartition("word")
    return words.groupBy(F.window("timestamp", WINDOW), "word").count()


def unique_visitor(rows: DataFrame) -> DataFrame:
    """An approximation (HyperLogLog++, standard deviation 2 %): exact sets of visitors would grow without end."""
    return _accesses(rows).groupBy("site").agg(F.approx_count_distinct("visitor", 0.02).alias("visitors"))


def page_view(rows: DataFrame) -> DataFrame:
    return _accesses(rows).groupBy("site").count()


def data_clean(rows: DataFrame) -> DataFrame:
    return _accesses(rows).where(F.col("status") == "200").select("site", "visitor", "bytes")


def data_clean_single(rows: DataFrame) -> DataFrame:
    """All that is kept goes through one partition, as the paper's URLs went to one node."""
    return data_clean(rows).repartition(1)


def _words(rows: DataFrame) -> DataFrame:
    return rows.select("timestamp", F.explode(F.split("value", " ")).alias("word"))


def _accesses(rows: DataFrame) -> DataFrame:
    parts = F.split("value", "\t")
    names = ("site", "visitor", "status", "bytes")
    return rows.select("timestamp", *(parts[place].alias(name) for place, name in enumerate(names)))


# Costs and values are measured: `scripts/bench alternates --costs yes` (docs/benchmarks.md).
IMAGES = (Variant("full", find_cells), Variant("coarse", find_cells_coarsely, cost=0.485, value=0.896))
PATTERNS = (Variant("all", all_patterns), Variant("hot", hot_patterns, cost=0.204, value=0.46))
VISITORS = (
    Variant("every", every_visitor),
    Variant("sampled", sampled_visitors, cost=0.55, value=0.967),
    Variant("sketch", coarse_sketch, cost=0.43, value=0.962, state="sketch"),
)

APPS = {
    app.name: app
    for app in (
        App("wordcount", "count words (CPU)", word_count, text_lines, paper="paper 1 §4.4"),
        App("sol", "pass rows on to another worker (network)", speed_of_light, text_lines, "append", "paper 1 §4.4"),
        App("rolling-sort", "sort rings of 1,000 rows every 5 s (memory)", rolling_sort, text_lines,
            paper="paper 1 §4.4"),
        App("grep", "count lines that match", grep, text_lines, paper="paper 1 §5.1"),
        App("grep-single", "grep with one global counter", grep_single, text_lines, paper="paper 1 §7"),
        App("rolling-count", "count words over 60 s", rolling_count, text_lines, paper="paper 1 §5.1"),
        App("rolling-count-skewed", "the same, each word by itself", rolling_count_skewed, text_lines,
            paper="paper 1 §7"),
        App("unique-visitor", "count each site's visitors, within 2 % or so", unique_visitor, web_log,
            paper="paper 1 §5.1"),
        App("page-view", "count each site's pages", page_view, web_log, paper="paper 1 §5.1"),
        App("data-clean", "keep accesses that ended well", data_clean, web_log, "append", "paper 1 §5.1"),
        App("data-clean-single", "the same, through one partition", data_clean_single, web_log, "append",
            "paper 1 §7"),
        App("vht", "learn a Hoeffding tree, attributes spread", vertical_hoeffding_tree, labelled_rows, "append",
            "paper 1 §5.1"),
        App("candlesticks", "prices of each symbol of a sector", candlesticks, price_ticks, paper="paper 2 §5.1"),
        App("hashtags", "count hashtags that begin so", hashtags, tweets, paper="paper 2 §5.1"),
        App("meter-loads", "median load of a house's meters", meter_loads, meter_readings, paper="paper 2 §5.1"),
        App("images", "count cells; the last 1,000 images answer queries", find_cells, image_rows, "append",
            "paper 5 §3.2", IMAGES),
        App("patterns", "count lines that match each of 48 patterns", all_patterns, text_lines, variants=PATTERNS),
        App("visitors", "count each site's visitors of a minute", every_visitor, web_log, variants=VISITORS),
    )
}  # fmt: skip
