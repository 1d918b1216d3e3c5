"""One page that needs nothing else: it opens offline and asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from penstock.core.files import whole
from penstock.report import markup, verdict
from penstock.report.payload import packed
from penstock.runs.comparison import Comparison

SHARED_SCRIPTS = ("format.js", "chart.js", "measures.js", "runs.js", "timeline.js", "pointer.js", "toolbar.js")
SCRIPTS = (*SHARED_SCRIPTS, "scatter.js", "report.js")
STYLES = ("report.css",)
ICON = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E"

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{icon}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""
BODY = """\
<header><p class="brand">Penstock report</p><h1>{title}</h1><p class="lead">{headline}</p></header>
<main>
{tiles}
<section class="card" aria-label="Scores"><h2>Scores</h2>{table}</section>
<div class="pair">
<section class="card" id="scatter-card" hidden><h2>Cost against violations</h2><div id="scatter"></div></section>
<section class="card"><h2>Setting</h2>{facts}</section>
</div>
<section id="timeline" aria-label="Over time"><noscript>The curves need JavaScript.</noscript></section>
</main>
<script type="application/json" id="run-data">{content}</script>"""


def write_page(path: Path, comparison: Comparison) -> None:
    """Write the comparison as a page; a failure leaves what stood under `path` as it was."""
    with whole(path) as scratch:
        # A lone surrogate in a policy's name is no reason to lose the report.
        scratch.write_bytes(page(comparison).encode("utf-8", errors="replace"))


def page(comparison: Comparison) -> str:
    """The text of the page."""
    title = title_of(comparison)
    body = BODY.format(
        title=escape(title),
        headline=verdict.headline(comparison),
        tiles=verdict.tiles(comparison),
        table=markup.table(comparison),
        facts=markup.facts(comparison),
        content=_inert(packed(comparison)),
    )
    return around(title, body, Assets(SCRIPTS, STYLES))


@dataclass(frozen=True, slots=True)
class Assets:
    """The files that a page carries, and where it may ask for more: nowhere, unless said."""

    scripts: tuple[str, ...]
    styles: tuple[str, ...]
    connect: str = "'none'"


def around(title: str, body: str, assets: Assets) -> str:
    """A whole page: the body with its styles and scripts, and a policy that lets nothing else run."""
    script, style = _assets(assets.scripts), _assets(assets.styles)
    allowed = f"script-src {_hash(script)}; style-src {_hash(style)}; connect-src {assets.connect}"
    return PAGE.format(
        policy=f"default-src 'none'; img-src data:; {allowed}",
        icon=ICON,
        title=escape(title),
        body=body,
        script=script,
        style=style,
    )


def title_of(comparison: Comparison) -> str:
    """What was run, and on what."""
    names = comparison.runs[0].name if len(comparison.runs) == 1 else f"{len(comparison.runs)} policies"
    return f"{names} on {comparison.trace}"


def _inert(content: object) -> str:
    """JSON that cannot end the element it stands in: `</script>` in a reason stays text."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _assets(names: tuple[str, ...]) -> str:
    folder = files("penstock.report") / "assets"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def _hash(text: str) -> str:
    """The content security policy lets this very text run, and nothing that may have slipped in."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
