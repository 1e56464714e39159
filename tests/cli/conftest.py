"""Commands in this process: their exit code and what they print."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from goldset.cli import main
from tests.pipeline.conftest import harbour

__all__ = ["harbour"]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on stderr that begins with the name of the tool, last of all."""
        lines = self.err.splitlines()
        assert [line for line in lines if line.startswith("goldset: ")] == lines[-1:], self.err
        assert "Traceback" not in self.err
        return lines[-1].removeprefix("goldset: ")


Goldset = Callable[..., Done]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOLDSET_CACHE", "GOLDSET_REVIEW_URL", "GOLDSET_REVIEW_TOKENS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def goldset(capsys: pytest.CaptureFixture[str]) -> Goldset:
    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """Thirty questions over forty passages; ``good.run`` has each answer at rank 1, ``bad.run`` at rank 3."""
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    passages = [{"_id": f"d{i}", "title": "", "text": f"Locker {i} opens with key number {i * 7}."} for i in range(40)]
    questions = [{"_id": f"q{i}", "text": f"which key opens locker {i}"} for i in range(30)]
    for name, rows in (("corpus", passages), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{i}\t1\n" for i in range(30)))
    for name, first in (("good", 0), ("bad", 2)):
        lines = []
        for i in range(30):
            others = [f"d{(i + step) % 40}" for step in (1, 2, 3, 4)]
            for rank, chunk in enumerate([*others[:first], f"d{i}", *others[first:]], 1):
                lines.append(f"q{i} Q0 {chunk} {rank} {10 - rank} {name}\n")
        (folder / f"{name}.run").write_text("".join(lines))
    return folder
