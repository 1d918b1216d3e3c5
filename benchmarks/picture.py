"""The README's picture and figures, all from one run of the demo: `scripts/picture`.

It writes docs/report.png, docs/demo.json (what the demo printed, as JSON) and the README's lines between the marks.
The picture carries the digest of the figures, so that a test can tell whether the three are of one run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

PICTURE, FIGURES, README = Path("docs/report.png"), Path("docs/demo.json"), Path("README.md")
MARKS = "<!-- demo: made by scripts/picture -->", "<!-- /demo -->"
KEY = b"penstock-figures"
SIZE = {"width": 1280, "height": 900}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-picture-") as scratch:
        folder = Path(scratch) / "demo"
        subprocess.run([sys.executable, "-m", "penstock", "demo", "--folder", str(folder)], check=True)
        shutil.copyfile(folder / "comparison.json", FIGURES)
        PICTURE.write_bytes(marked(photograph(folder / "report.html"), digest()))
    begin, end = MARKS
    before, _, rest = README.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    README.write_text(f"{before}{begin}\n{figures(json.loads(FIGURES.read_text()))}\n{end}{after}", encoding="utf-8")


def photograph(page: Path) -> bytes:
    """The report as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        view.goto(page.resolve().as_uri())
        view.wait_for_selector("html[data-drawn=yes]")
        shot = view.screenshot()
        browser.close()
        return shot


def digest() -> str:
    return hashlib.sha256(FIGURES.read_bytes()).hexdigest()


def marked(png: bytes, text: str) -> bytes:
    """The picture with a text chunk right after its header."""
    content = b"tEXt" + KEY + b"\0" + text.encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return png[:33] + chunk + png[33:]


def mark_of(png: bytes) -> str:
    """The digest that a picture carries; empty if none."""
    _, found, rest = png[:400].partition(KEY + b"\0")
    return rest[:64].decode("ascii", "replace") if found else ""


def figures(result: dict[str, Any]) -> str:
    """What the README says of the demo, in its own lines."""
    by_name = {each["name"]: each for each in result["policies"]}
    ours, peak, plain = by_name["deadline"], by_name["static-peak"], by_name["threshold"]
    saved = 1 - ours["cost"] / peak["cost"]
    more, missed = plain["cost"] / ours["cost"], plain["violation_share"]
    lines = [
        f"In the demo (four days of a log, {result['objective']}, on simulated workers like those it measured)",
        f"`deadline` costs {saved:.0%} less than the static peak and misses {ours['violation_share']:.2%} of the time;",
        f"plain thresholds cost {more:.2f} times as much and miss {missed:.2%}. Other loads differ: replay your own.",
        "",
        "| policy | cost | to the bound | time missed | scaling actions |",
        "|---|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *map(_row, result["policies"])])


def _row(each: dict[str, Any]) -> str:
    bound = "" if each["cost_to_bound"] is None else f"{each['cost_to_bound']:.2f}"
    cells = (f"${each['cost']:.2f}", bound, f"{each['violation_share']:.2%}", str(each["scaling_actions"]))
    return f"| `{each['name']}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
