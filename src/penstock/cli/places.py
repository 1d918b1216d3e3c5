"""Options that say where a job runs and reads, the same for all commands that start one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.core.errors import BadInput

if TYPE_CHECKING:
    from penstock.live.kafka import KafkaSource


def add_places(parser: argparse.ArgumentParser) -> None:
    places = parser.add_argument_group("places")
    places.add_argument("--source", choices=("files", "kafka"), default="files", help="where rows come from (files)")
    places.add_argument("--broker", metavar="HOST:PORT", help="an existing Kafka broker")
    places.add_argument("--topic", metavar="NAME", help="of that broker, from its beginning")
    places.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="kafka.security.… and such")
    places.add_argument("--master", metavar="URL", help="an existing cluster: spark://host:7077 (yarn, k8s: untested)")


def kafka_of(options: argparse.Namespace) -> KafkaSource | None:
    """The broker that was named, if any; its topic may be empty."""
    from penstock.live.kafka import KafkaSource

    for name in ("broker", "topic", "option"):
        if getattr(options, name) and options.source != "kafka":
            raise BadInput(f"--{name} is for --source kafka")
    if options.broker is None:
        if options.topic or options.option:
            raise BadInput("--topic and --option are for a broker of your own: give --broker host:port")
        return None
    wrong = [each for each in options.option if "=" not in each]
    if wrong:
        raise BadInput(f"--option {wrong[0]}: write KEY=VALUE")
    return KafkaSource(options.broker, options.topic or "", dict(each.split("=", 1) for each in options.option))
