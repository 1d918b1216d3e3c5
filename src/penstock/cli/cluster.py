"""`penstock cluster`: a Spark cluster, and a Kafka broker, to try things on."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import time
from typing import TYPE_CHECKING

from penstock.cli.numbers import cores, integer, port
from penstock.cli.progress import bar
from penstock.core.errors import BadInput

if TYPE_CHECKING:
    from penstock.live.cluster import Cluster
    from penstock.live.kafka import Broker

ABOUT = """\
A real Spark cluster on this machine: a master, and workers that each get a part of a core (by cgroup, where this
user may make them). It runs until Ctrl-C; then no process, cgroup or file of it is left.
"""
EXAMPLES = """\
examples:
  penstock cluster                                  4 workers of a quarter of a core
  penstock cluster --workers 2 --cores 0.5 --memory 2g --port 7077
  penstock cluster --kafka                          and a broker (the first time, 63 MB of jars are fetched)
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("cluster", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("--workers", type=integer(1, 1000), default=4, metavar="N", help="how many (4)")
    parser.add_argument("--cores", type=cores, default=0.25, metavar="C", help="CPU that each may use (0.25)")
    parser.add_argument("--memory", default="1g", metavar="SIZE", help="of each worker's executors (1g)")
    parser.add_argument("--port", type=port, default=0, metavar="P", help="the master's (any that is free)")
    parser.add_argument("--kafka", action="store_true", help="a Kafka broker too")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.live.cluster import Cluster, ClusterSpec

    spec = ClusterSpec(options.workers, options.cores, _megabytes(options.memory), port=options.port)
    with contextlib.ExitStack() as world:
        with bar("starting"):
            broker = _broker(world) if options.kafka else None
            cluster = world.enter_context(Cluster.start(spec))
        with contextlib.suppress(KeyboardInterrupt):  # here it is not an error, but how this ends
            print(_as_json(cluster, broker) if options.output == "json" else _as_text(cluster, broker), flush=True)
            _watch(cluster, broker)
    if options.output == "text":
        print("stopped: nothing is left running")
    return 0


def _broker(world: contextlib.ExitStack) -> Broker:
    from penstock.live.kafka import Broker

    return world.enter_context(Broker.start())


def _watch(cluster: Cluster, broker: Broker | None) -> None:
    while True:
        cluster.need_alive()
        if broker:
            broker.need_alive()
        time.sleep(0.5)


def _as_json(cluster: Cluster, broker: Broker | None) -> str:
    shown = {"url": cluster.url, "page": cluster.page, "workers": len(cluster.workers), "limited": cluster.is_limited}
    if broker:
        shown |= {"kafka": broker.address, "jars": broker.spark_jars}
    return json.dumps(shown)


def _as_text(cluster: Cluster, broker: Broker | None) -> str:
    spec = cluster.spec
    share = f"{spec.cores:g} cores" if cluster.is_limited else "no CPU limit"
    lines = [
        f"Spark   {cluster.url}   {spec.workers} workers, each: {share}, {spec.memory_mb} MB",
        f"page    {cluster.page}",
    ]
    if broker:
        lines += [f"Kafka   {broker.address}", f"jars    {broker.spark_jars}"]
    jars = " --jars JARS" if broker else ""
    lines += [
        "",
        f"  pyspark --master {cluster.url} --conf spark.driver.host=127.0.0.1{jars}",
        f"  penstock sweep world.toml --policy threshold --master {cluster.url} -o results.parquet",
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def _megabytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([mg])b?", text.strip(), re.IGNORECASE)
    if match is None:
        raise BadInput(f"--memory '{text}' is not a size: write 1g or 1536m")
    return int(match[1]) * (1024 if match[2].lower() == "g" else 1)
