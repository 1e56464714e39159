"""A function of one's own as a system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldset.errors import ConfigError, DataError
from goldset.retrievers import build_retrievers
from tests.retrievers.tables import chunks_table, documents_table, lists, make_config, questions_table, states


def _write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str) -> None:
    (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_python_function_is_a_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_module(
        tmp_path,
        monkeypatch,
        "my_search",
        (
            "def search(questions, depth):\n"
            "    first = questions.column('question_id')[0].as_py()\n"
            "    chunks = ['c03', 'c01', 'c02'] + ['c04'] * 0\n"
            "    return [{'question_id': first, 'chunk_id': c, 'score': s} for c, s in zip(chunks, [2, 1.5, None])]\n"
            "def twice(questions, depth):\n"
            "    return [{'question_id': 'q1', 'chunk_id': 'c01'}] * 2\n"
            "def other(questions, depth):\n"
            "    return [{'question_id': 'q8', 'chunk_id': 'c01'}]\n"
            "def nothing(questions, depth):\n"
            "    return None\n"
        ),
    )

    def system(function: str) -> Any:
        config = make_config(tmp_path, {"mine": {"kind": "python", "family": "m", "entry": f"my_search:{function}"}})
        return build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
            "mine"
        ]

    run, status = system("search").search(questions_table("one", "two"), 2)
    assert lists(run) == {"q1": ["c03", "c01"]}
    assert run.column("score").to_pylist() == [2.0, 1.5]
    assert states(status) == {"q1": ("ok", None), "q2": ("empty", None)}
    with pytest.raises(DataError, match="my_search:twice: chunk 'c01' stands twice in the list of question q1"):
        system("twice").search(questions_table("one"), 2)
    with pytest.raises(DataError, match="my_search:other, row 1: question_id 'q8'"):
        system("other").search(questions_table("one"), 2)
    with pytest.raises(DataError, match="returned NoneType; it must return rows"):
        system("nothing").search(questions_table("one"), 2)
    with pytest.raises(ConfigError, match="the module has no 'find'"):
        system("find")


def test_an_entry_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"mine": {"kind": "python", "family": "m", "entry": "no_such_module_x:search"}})
    with pytest.raises(ConfigError, match=r"\[systems.mine\] entry = 'no_such_module_x:search': no module"):
        build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
