"""Options that say where a job runs and reads, the same for all commands that start one."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.core.text import hide

if TYPE_CHECKING:
    from penstock.live.kafka import KafkaSource

_HARMLESS = re.compile(r"protocol$|mechanism$|client\.id$|\.ms$|^(?!kafka\.)", re.IGNORECASE)
_SECRET = re.compile(r"password|secret|jaas|token|credential|\.key$", re.IGNORECASE)
_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")


def add_places(parser: argparse.ArgumentParser) -> None:
    places = parser.add_argument_group("places")
    places.add_argument("--source", choices=("files", "kafka"), default="files", help="where rows come from (files)")
    places.add_argument("--broker", metavar="HOST:PORT", help="an existing Kafka broker")
    places.add_argument("--topic", metavar="NAME", help="of that broker, from its beginning")
    places.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="kafka.security.… and such")
    secret = "a file of lines KEY=VALUE; ${NAME} is taken from the environment: where passwords belong"
    places.add_argument("--options", type=Path, metavar="FILE", help=secret)
    places.add_argument("--master", metavar="URL", help="an existing cluster: spark://host:7077 (yarn, k8s: untested)")


def kafka_of(options: argparse.Namespace) -> KafkaSource | None:
    """The broker that was named, if any; its topic may be empty."""
    from penstock.live.kafka import KafkaSource

    for name in ("broker", "topic", "option", "options"):
        if getattr(options, name) and options.source != "kafka":
            raise BadInput(f"--{name} is for --source kafka")
    if options.broker is None:
        if options.topic or options.option or options.options:
            raise BadInput("--topic, --option and --options are for a broker of your own: give --broker host:port")
        return None
    given = [("--option", line) for line in options.option]
    if options.options:
        given += _lines(options.options)
    return KafkaSource(options.broker, options.topic or "", dict(_pair(line, where) for where, line in given))


def _lines(path: Path) -> list[tuple[str, str]]:
    """The lines of an options file that say something, and where they stand."""
    try:
        lines = reads(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--options {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    told = ((f"--options {path}, line {number}", line.strip()) for number, line in enumerate(lines, 1))
    return [(where, line) for where, line in told if line and not line.startswith("#")]


def _pair(line: str, where: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in line.partition("="))
    if not equals or not key:
        # The line itself is not shown: it may be a password.
        raise BadInput(f"{where}: write KEY=VALUE")
    for name in _FROM_ENVIRONMENT.findall(value):
        if name not in os.environ:
            raise BadInput(f"{where}: {key} takes ${{{name}}} from the environment, where it is not set")
        hide(os.environ[name])
    value = _FROM_ENVIRONMENT.sub(lambda found: os.environ[found[1]], value)
    if _SECRET.search(key) or (where.startswith("--options") and not _HARMLESS.search(key)):
        hide(value)
        # A JAAS configuration has the password within: password="…".
        for quoted, bare in re.findall(r'password\s*=\s*(?:"([^"]*)"|([^\s;"]+))', value):
            hide(quoted or bare)
    return key, value
