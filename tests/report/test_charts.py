"""Charts as SVG: what is drawn where."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from penstock.report.charts import Bars, Lines, bar_chart, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_a_bar_is_as_long_as_its_value_and_names_are_escaped() -> None:
    drawn = ET.fromstring(bar_chart([Bars("profit", {"a & b": 0.5, "c": 0.25, "none": -0.1})]))
    wide = [float(each.attrib["width"]) for each in drawn.iter(f"{SVG}rect") if "x" in each.attrib]
    assert wide[0] == 2 * wide[1] > 0
    assert wide[2] == 0
    assert [each.text for each in drawn.iter(f"{SVG}text")][:3] == ["a & b", "c", "none"]


def test_all_panels_share_a_scale_and_a_higher_value_is_drawn_higher() -> None:
    panels = [
        Lines("low", "x", ("1", "2"), {"a": (-0.2, 0.1)}),
        Lines("high", "x", ("1", "2"), {"a": (0.1, 0.7)}),
    ]
    drawn = ET.fromstring(line_chart(panels))
    heights = [
        [float(point.split(",")[1]) for point in line.attrib["points"].split()] for line in drawn.iter(f"{SVG}polyline")
    ]
    assert heights[0][1] == heights[1][0]
    assert heights[0][0] > heights[0][1] > heights[1][1]


def test_equal_values_are_a_flat_line() -> None:
    drawn = ET.fromstring(line_chart([Lines("flat", "x", ("1", "2"), {"a": (0.6, 0.6)})]))
    line = next(drawn.iter(f"{SVG}polyline"))
    assert len({point.split(",")[1] for point in line.attrib["points"].split()}) == 1
