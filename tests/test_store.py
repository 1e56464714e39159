"""Artifacts are whole or absent; the lock names its holder."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from goldset.errors import DataError, ExternalError
from goldset.schemas import from_rows
from goldset.store import Workspace, read_json, read_table, staged_folder, write_json, write_text

ROWS = [{"reason": "kept", "lines": 2, "example": None}]


def test_an_artifact_comes_back_as_it_was_written(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w").open()
    ref = workspace.write("questions", "k1", {"drops": from_rows("drops", ROWS)}, {"seed": 7})
    assert read_table(ref.path, "drops").to_pylist() == ROWS
    assert read_json(ref.path / "manifest.json")["rows"] == {"drops": 1}
    assert workspace.has("questions", "k1")
    assert not workspace.has("questions", "k2")


def test_a_table_that_does_not_conform_leaves_nothing_behind(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path).open()
    with pytest.raises(DataError, match="missing columns"):
        workspace.write("questions", "k", {"drops": from_rows("drops", ROWS).select(["reason"])}, {})
    assert list((tmp_path / "artifacts" / "questions").iterdir()) == []


def test_a_staged_folder_disappears_when_the_block_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with staged_folder(tmp_path / "target") as folder:
            (folder / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_artifact_is_never_overwritten(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with staged_folder(tmp_path / "target") as folder:
            (folder / "file").write_text(text)
    assert (tmp_path / "target" / "file").read_text() == "first"


def _fill(target: Path, ready: Any) -> None:
    with staged_folder(target) as folder:
        (folder / "half").write_text("x")
        ready.set()
        time.sleep(60)


def test_what_a_killed_process_left_is_cleared_and_what_a_living_one_fills_is_not(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    killed, living = (spawn.Event(), spawn.Event())
    fillers = [spawn.Process(target=_fill, args=(tmp_path / name, ready))
               for name, ready in (("one", killed), ("two", living))]
    try:
        for filler in fillers:
            filler.start()
        assert killed.wait(30)
        assert living.wait(30)
        fillers[0].kill()
        fillers[0].join()
        # A user's own hidden folder, and a file, are none of ours.
        (tmp_path / ".one-notes").mkdir()
        (tmp_path / ".one-abcd1234.filling").write_text("a file")
        assert sum(path.name.endswith(".filling") for path in tmp_path.iterdir()) == 3
        with staged_folder(tmp_path / "three") as folder:
            (folder / "whole").write_text("x")
        names = sorted(path.name for path in tmp_path.iterdir())
        assert [name for name in names if "two-" not in name] == [".one-abcd1234.filling", ".one-notes", "three"]
        (still,) = [path for path in tmp_path.iterdir() if "two-" in path.name]
        assert (still / "half").exists()
    finally:
        for filler in fillers:
            filler.kill()
            filler.join()


def test_many_start_to_fill_while_others_clear(tmp_path: Path) -> None:
    """Whoever has made its folder, and no lock on it yet, may find it cleared, and makes another."""

    def fill(number: int) -> None:
        for turn in range(20):
            with staged_folder(tmp_path / f"{number}-{turn}") as folder:
                (folder / "file").write_text("x")

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(fill, range(8)))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{n}-{t}" for n in range(8) for t in range(20))
    assert all((path / "file").exists() for path in tmp_path.iterdir())


def _hold(root: Path, ready: Any, release: Any) -> None:
    with Workspace(root).lock("rebuild"):
        ready.set()
        release.wait(30)


def test_the_lock_names_its_holder_and_ends_with_its_process(tmp_path: Path) -> None:
    Workspace(tmp_path).open()
    spawn = multiprocessing.get_context("spawn")
    ready, release = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=_hold, args=(tmp_path, ready, release))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(ExternalError, match=rf"locked by goldset rebuild \(process {holder.pid}\)"), \
            Workspace(tmp_path).lock("publish"):
        pass
    holder.kill()
    holder.join()
    with Workspace(tmp_path).lock("publish"):
        assert "publish" in (tmp_path / "lock").read_text()


def test_a_workspace_of_another_format_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "workspace.json", {"format": 99})
    with pytest.raises(DataError, match="workspace format 99"):
        Workspace(tmp_path).open()


def test_json_has_no_nan_and_names_the_bad_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()
    write_text(tmp_path / "b.json", '{\n "a": }')
    with pytest.raises(DataError, match=r"b\.json, line 2: not JSON"):
        read_json(tmp_path / "b.json")
