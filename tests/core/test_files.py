"""Outputs: whole or not there, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.core.files import (
    MARKER,
    own_folder,
    reads,
    remove_own,
    same_place,
    sparing_inputs,
    whole,
    whole_folder,
    writable,
)


def test_a_file_takes_its_name_when_the_block_ends_well(tmp_path: Path) -> None:
    with whole(tmp_path / "page.html") as scratch:
        scratch.write_text("new")
        assert not (tmp_path / "page.html").exists()
    assert (tmp_path / "page.html").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_block_that_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(FileNotFoundError), whole(tmp_path / "page.html") as scratch:
        (scratch.write_text("half"), Path("nowhere").read_text())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page.html": "old"}


@pytest.mark.parametrize(
    "name", ["folder", "folder/..", ".", "..", "/", "link", "dangling", "fifo", "/dev/null", "x\0y"]
)
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(BadInput, match="cannot write"), whole(tmp_path / name) as scratch:
        scratch.write_text("new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert not Path("/dev/null").is_file()


def test_a_path_that_became_a_folder_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def written() -> None:
        with whole(tmp_path / "page") as scratch:
            scratch.write_text("new")
            (tmp_path / "page").mkdir()

    with pytest.raises(BadInput, match="it is a folder"):
        written()
    assert (tmp_path / "page").is_dir()


def test_an_output_that_is_also_the_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("1\n2\n")
    (tmp_path / "other.csv").hardlink_to(tmp_path / "rates.csv")
    with sparing_inputs():
        writable(tmp_path / "other.csv")
        reads(tmp_path / "rates.csv")
        for name in ("rates.csv", "other.csv"):
            with pytest.raises(BadInput, match="also an input"):
                writable(tmp_path / name)
    reads(tmp_path / "rates.csv")
    writable(tmp_path / "rates.csv")


@pytest.mark.parametrize("name", ["fifo", "/dev/zero", "/dev/null", "x\0y"])
def test_what_would_never_end_is_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadInput, match=r"no regular file|cannot be read"):
        reads(tmp_path / name)


def test_a_name_that_is_too_long_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name too long"):
        writable(tmp_path / ("x" * 300))


def test_a_folder_of_somebody_else_is_neither_taken_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("mine")
    with pytest.raises(BadInput, match="there are files in it that are not a demo's output"):
        own_folder(tmp_path, "a demo's output")
    remove_own(tmp_path)
    assert (tmp_path / "access.log").read_text() == "mine"


def test_a_folder_of_ours_is_taken_again_and_removed(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "a" / "b", "results")
    (folder / "part").touch()
    assert own_folder(folder, "results") == folder
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(BadInput, match="symbolic link"):
        own_folder(tmp_path / "link", "results")
    remove_own(tmp_path / "link")
    assert (folder / "part").exists()
    remove_own(folder)
    assert not folder.exists()


def test_an_empty_folder_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    with pytest.raises(BadInput, match="name a new folder"):
        own_folder(tmp_path / "out.partial", "results", is_removed=True)
    assert (tmp_path / "out.partial").is_dir()


def test_two_names_of_one_place_are_told(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert same_place(tmp_path / "link" / "m.json", tmp_path / "real" / "m.json")
    assert same_place(tmp_path / "real" / ".." / "m.json", tmp_path / "m.json")
    assert not same_place(tmp_path / "real" / "m.json", tmp_path / "m.json")


def test_a_new_folder_comes_whole_and_marked(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "jars") as scratch:
        (scratch / "one.jar").touch()
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == [MARKER, "one.jar"]
    with pytest.raises(OSError), whole_folder(tmp_path / "jars"):
        pass
    assert (tmp_path / "jars" / "one.jar").exists()


@given(parts=st.lists(st.sampled_from([".", "..", "d", "f", "l", "new"]), min_size=1, max_size=5))
def test_no_path_whatever_removes_something(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.mktemp("tree") / "base"
    (root / "d" / "d").mkdir(parents=True)
    (root / "d" / "f").write_text("deep")
    (root / "f").write_text("flat")
    (root / "l").symlink_to("d")
    before = set(root.parent.rglob("*"))
    try:
        with whole(root.joinpath(*parts)) as scratch:
            scratch.write_text("new")
    except BadInput:
        pass
    assert before <= set(root.parent.rglob("*"))
    assert (root / "l").is_symlink()
