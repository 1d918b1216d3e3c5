"""A format of `penstock trace` is one entry: what it says is what detection, help and messages use."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.core.columns import KINDS as TABLE_KINDS
from penstock.core.errors import BadInput
from penstock.pipeline.formats import FORMATS, KINDS, Format
from penstock.pipeline.recognise import recognise
from penstock.pipeline.request import TraceRequest


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_every_entry_names_a_reader_that_takes_what_all_take(entry: Format) -> None:
    module, _, function = entry.reader.partition(":")
    reader = getattr(importlib.import_module(f"penstock.pipeline.{module}"), function)
    assert list(inspect.signature(reader).parameters) == ["spark", "source", "request", "scratch"]


def test_every_kind_is_in_the_help_and_in_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "--help"])
    shown = capsys.readouterr().out
    (tmp_path / "a.txt").write_text("hello\n")
    with pytest.raises(BadInput) as error:
        recognise(TraceRequest(tmp_path / "a.txt", tmp_path / "rates.parquet"))
    for kind in KINDS.values():
        assert kind.about in shown
        assert kind.name in str(error.value)


def test_tables_have_the_kinds_that_columns_have() -> None:
    assert tuple(kind.name for entry in FORMATS if entry.name == "table" for kind in entry.kinds) == TABLE_KINDS
