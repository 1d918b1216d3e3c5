"""The live page: a frame that its script fills, and goes on filling."""

from __future__ import annotations

from html import escape

from penstock.core.journal import Header
from penstock.report import show
from penstock.report.page import SHARED_SCRIPTS, STYLES, Assets, around

LIVE = Assets((*SHARED_SCRIPTS, "grown.js", "live.js"), (*STYLES, "live.css"), "'self'")

BODY = """\
<header class="live">
<div><p class="brand">Penstock live</p><h1>{title}</h1><p class="lead">{setting}</p></div>
<p id="state" class="waiting"><i></i><span>reading the journal</span></p>
</header>
<main>
<p id="trouble" class="card" hidden></p>
<div class="tiles" id="figures"></div>
<div class="beside">
<section id="timeline" aria-label="Over time"><noscript>This page needs JavaScript; so does not: penstock status
</noscript></section>
<aside class="card" aria-label="Last decisions"><h2>Last decisions</h2><ol id="decisions"></ol></aside>
</div>
</main>"""


def live_page(header: Header) -> str:
    """The page of one journal."""
    title = f"{header.policy} on {header.job}"
    return around(title, BODY.format(title=escape(title), setting=_setting(header)), LIVE)


def _setting(header: Header) -> str:
    objective, price = show.objective(str(header.objective)), show.money(header.price.per_hour)
    texts = (f"{header.limits}", f"a step every {show.duration(header.tick_s)}", f"{price} per worker hour")
    return f"<b>{escape(objective)}</b>, " + escape(", ".join(texts))
