"""Bad input, one case a row: one sentence on stderr, the documented exit code, nothing half-written."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from goldset.store import Workspace
from goldset.text import question_id
from tests.cli import spoil
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour


@dataclass(frozen=True)
class Case:
    """What is spoilt in the golden project, and how ``goldset rebuild`` must answer."""

    name: str
    harm: spoil.Spoil
    says: str
    code: int = 3


def _strange_chunks(line: str) -> str:
    row = json.loads(line)
    return json.dumps({**row, "text": f"Nothing of the kind stands in any document, says {row['chunk_id']}."})


REPLAY = 'kind = "replay"\nfamily = "recorded"\npath = "verdicts.jsonl"\n'
# Nothing listens on the discard port.
OPENAI = 'kind = "openai"\nfamily = "x"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nretries = 0\n'

REBUILD = [
    # the configuration
    Case("misspelt key", spoil.edit("harbour.toml", "served_k = 2", "serverd_k = 2"),
         r"harbour\.toml: unknown key 'scoring\.serverd_k'; did you mean 'served_k'\?"),
    Case("misspelt key of a system", spoil.edit("harbour.toml", 'path = "production.run"', 'pth = "production.run"'),
         r"unknown key 'systems\.production\.pth'; did you mean 'path'\?"),
    Case("misspelt section", spoil.edit("harbour.toml", "[review]", "[reviews]"),
         r"unknown key 'reviews'; did you mean 'review'\?"),
    Case("missing key", spoil.edit("harbour.toml", "served_k = 2\n", ""), r"the key 'scoring\.served_k' is missing"),
    Case("wrong value", spoil.edit("harbour.toml", 'profile = "basic"', 'profile = "thorough"'),
         r"'review\.profile' is 'thorough': .*'basic' or 'careful'"),
    Case("unknown system", spoil.edit("harbour.toml", 'system = "production"', 'system = "produktion"'),
         r"\[scoring\] system: no system 'produktion'; did you mean 'production'\?"),
    Case("not TOML", spoil.edit("harbour.toml", "[corpus]", "[corpus"), r"harbour\.toml: not valid TOML: .*line 5"),
    Case("configuration in UTF-16", spoil.recode("harbour.toml", "utf-16"), r"harbour\.toml: not valid TOML: .*utf-8"),
    Case("no configuration", spoil.remove("harbour.toml"),
         r"harbour\.toml: no such configuration file; 'goldset init DIR'"),
    # the corpus
    Case("no documents", spoil.remove("documents.jsonl"),
         r"documents\.jsonl: No such file or directory; paths in the configuration are relative to its file"),
    Case("empty corpus file", spoil.write("documents.jsonl", ""),
         r"documents\.jsonl: no document with any text in it \(0 empty\)"),
    Case("corpus of empty documents", spoil.write("documents.jsonl", '{"doc_id": "a", "text": " "}\n'),
         r"documents\.jsonl: no document with any text in it \(1 empty\)"),
    Case("chunks without text",
         spoil.lines("chunks.jsonl", lambda line: json.dumps({**json.loads(line), "text": "\u200b"})),
         r"chunks\.jsonl: no chunk with any text in it \(14 empty\)"),
    Case("document id twice", spoil.append("documents.jsonl", '{"doc_id": "ferry", "text": "Another ferry."}'),
         r"documents\.jsonl, lines 1 and 11: the id 'ferry' stands twice"),
    Case("chunk id twice", spoil.append("chunks.jsonl", '{"chunk_id": "dogs", "doc_id": "dogs", "text": "Dogs"}'),
         r"chunks\.jsonl, lines 11 and 15: the id 'dogs' stands twice"),
    Case("no id", spoil.append("documents.jsonl", '{"dok_id": "x", "text": "Another ferry."}'),
         r"documents\.jsonl, line 11: no id in the field 'doc_id' .* did you mean 'dok_id'\?"),
    Case("damaged line", spoil.append("documents.jsonl", '{"doc_id": "x", "text": "Ano'),
         r"documents\.jsonl, line 11: not JSON"),
    Case("offsets of other documents", spoil.lines("chunks.jsonl", _strange_chunks),
         r"chunks\.jsonl, line 1: the text of chunk 'ferry-a' is not in its document 'ferry' \(offsets 0-.*nor are 13"),
    Case("offsets the wrong way round", spoil.edit("chunks.jsonl", '"start": 0, "end": 95', '"start": 95, "end": 0'),
         r"chunks\.jsonl, line \d+: offsets start = 95, end = 0; they must be whole numbers with 0 <= start < end"),
    Case("documents in UTF-16", spoil.recode("documents.jsonl", "utf-16"),
         r"documents\.jsonl: UTF-16 text; convert it to UTF-8"),
    Case("documents in Latin-1", spoil.write("documents.jsonl", '{"doc_id": "a", "text": "Fähre"}\n'.encode("latin-1")),
         r"documents\.jsonl, line 1: not UTF-8"),
    # the log
    Case("no log", spoil.remove("log.jsonl"), r"log\.jsonl: No such file or directory"),
    Case("empty log", spoil.write("log.jsonl", ""), r"the logs hold no question at all"),
    Case("log without a usable question",
         spoil.write("log.jsonl", "".join(f'{{"q": "{text}", "ts": "2026-03-03T09:00:00Z", "sid": "{text}"}}\n'
                                          for text in ("hello", "thanks", "ok"))),
         r"no usable question among 3 log events \(greeting 3; window "),
    Case("log without the column", spoil.edit("harbour.toml", 'text = "q"', 'text = "question"'),
         r"log\.jsonl: no column 'question'; columns found: q, sid, ts; name the right one as text in "),
    Case("log full of damaged lines", spoil.lines("log.jsonl", lambda line: line if "boat" in line else line[:-9]),
         r"log\.jsonl, line \d+: not_json; \d+ of 20 log lines cannot be read, \[questions\] bad_share allows 0\.2"),
    # the systems
    Case("no run", spoil.remove("production.run"), r"production\.run: No such file or directory"),
    Case("unknown chunks in the run", spoil.lines("production.run", lambda line: line.replace(" Q0 ", " Q0 v1/")),
         r"\[systems\.production\]: 0 of 11 returned ids resolve to a chunk of this corpus, e\.g\. 'v1/"),
    Case("unknown questions in the run", spoil.lines("production.run", lambda line: "x" + line),
         r"production\.run: 0 of 7 questions are in the run"),
    Case("a chunk twice in the run", spoil.append("production.run", f"{question_id(golden.LOST)} Q0 dogs 9 1 p"),
         r"production\.run, line 18: chunk 'dogs' .*line 13"),
    Case("damaged gzip", spoil.write("production.run", spoil.CUT), r"production\.run.* the gzip file is damaged"),
    Case("no such entry", spoil.edit("harbour.toml", "golden:browse", "golden:brows"),
         r"\[systems\.browse\] entry = 'tests\.pipeline\.golden:brows': the module has no 'brows'"),
    # the judge
    Case("no rubric", spoil.remove("relevance.md"), r"relevance\.md: No such file or directory"),
    Case("rubric without a version", spoil.write("relevance.md", "Relevant is what answers.\n"),
         r"relevance\.md, line 1: .*where the version was expected"),
    Case("verdict that is no verdict",
         spoil.append("verdicts.jsonl", '{"question_id": "q", "span_id": "s", "relevant": "yes"}'),
         r"verdicts\.jsonl, line 19: relevant is 'yes'; write true, false, or null"),
    Case("no key for the judge", spoil.edit("harbour.toml", REPLAY, OPENAI + 'api_key_env = "NO_SUCH_KEY"\n'),
         r"\[judge\] api_key_env: the environment variable NO_SUCH_KEY is not set"),
    Case("no budget for the judge", spoil.edit("harbour.toml", REPLAY, OPENAI + "budget = {calls = 0}\n"),
         r"budget\.calls = 0 does not cover the next call .* run again to go on from here, or raise", code=8),
    Case("no judge at the address", spoil.edit("harbour.toml", REPLAY, OPENAI),
         r"the judge at http://127\.0\.0\.1:9/v1 left .*every answer so far is stored, run again", code=9),
]


@pytest.mark.parametrize("case", REBUILD, ids=lambda case: case.name)
def test_rebuild(goldset: Goldset, tmp_path: Path, case: Case) -> None:
    config = golden.write(tmp_path / "harbour")
    case.harm(config.parent)
    given = golden.listing(config.parent)
    done = goldset("rebuild", "-c", config)
    assert done.code == case.code
    assert re.search(case.says, done.complaint), done.complaint
    assert done.out == ""
    # What was given is untouched; what was finished is whole; nothing lies half-written, and no queue is open.
    after = golden.listing(config.parent)
    assert {name: after[name] for name in given} == given
    made = sorted(set(after) - set(given))
    assert not [name for name in made if "/." in name or "tmp" in name]
    folders = {Path(name).parent for name in made if name.startswith("workspace/artifacts/")}
    assert all(str(folder / "manifest.json") in made for folder in folders)
    assert not {"workspace/current.json", "workspace/review.sqlite"} & set(made)


def test_rebuild_goes_on_after_the_mistake_is_mended(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    good = (config.parent / "production.run").read_text()
    (config.parent / "production.run").write_text("nonsense\n")
    assert goldset("rebuild", "-c", config).code == 3
    (config.parent / "production.run").write_text(good)
    done = goldset("rebuild", "-c", config)
    assert done.code == 0
    assert "spans: nothing changed, reused" in done.err
    assert done.out.startswith("queue: 26 of 26 items wait for people")


def test_an_empty_document_and_shifted_offsets_are_counted_and_no_errors(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    # One chunk of fourteen says it starts three characters late: it is found where it stands.
    spoil.edit("chunks.jsonl", '"start": 0, "end": 92', '"start": 3, "end": 95')(config.parent)
    done = goldset("rebuild", "-c", config, "--until", "corpus", "--json")
    assert done.code == 0
    (stage,) = json.loads(done.out)["stages"]
    folder = tmp_path / "harbour/workspace/artifacts/corpus" / stage["key"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["report"]["documents_file"]["empty_documents"] == 1
    assert manifest["report"]["offsets"] == {"verified": 13, "located": 1}
    assert "'dogs'" in manifest["report"]["first"]["located"]


# --- commands on a finished project --------------------------------------------------------------------------------


def _version(harbour: Harbour) -> Path:
    return harbour.published.path


def test_a_locked_workspace_names_the_holder(goldset: Goldset, harbour: Harbour) -> None:
    before = golden.listing(harbour.path.parent)
    with Workspace(harbour.config.workspace).lock("rebuild"):
        for command in ("rebuild", "publish"):
            done = goldset(command, "-c", harbour.path)
            assert done.code == 9
            assert re.search(r"workspace/lock: the workspace is locked by goldset rebuild \(process \d+\); wait",
                             done.complaint)
    assert golden.listing(harbour.path.parent) == before


def test_publish_before_the_review_is_complete(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    done = goldset("publish", "-c", config)
    assert done.code == 3
    assert "no finished rebuild (stage 'corpus' is missing); run 'goldset rebuild' first" in done.complaint
    assert goldset("rebuild", "-c", config).code == 0
    done = goldset("publish", "-c", config)
    assert done.code == 5
    assert done.complaint.startswith(
        "26 of 26 items wait for people (2 no_verdict, 6 positive, 5 rejection, 13 second), 0 conflicts")
    assert not (tmp_path / "harbour/workspace/gold").exists()


def test_unknown_chunks_in_a_run_are_never_recall_0(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    run = tmp_path / "moved.run"
    run.write_text("\n".join(golden.run_lines(golden.PRODUCTION)).replace(" Q0 ", " Q0 v2-") + "\n")
    for command in (["recall", "--k", "2"], ["audit"], ["compare", "--k", "2", "--run", f"b={run}"]):
        done = goldset(command[0], _version(harbour), "--run", f"a={run}", *command[1:])
        assert done.code == 3, command
        assert re.match(r"run '[ab]': 0 of 11 chunk ids resolve; the first is 'v2-", done.complaint), command
        assert done.out == ""


USAGE = [
    (["rebild"], r"^no command 'rebild'; did you mean 'rebuild'\?$"),
    (["rebuild"], r"Missing option '-c' / '--config'; 'goldset rebuild --help' shows how it is used$"),
    (["rebuild", "-c", "{config}", "--until", "qeue"], r"^no stage 'qeue'; did you mean 'queue'\?$"),
    (["rebuild", "-c", "{config}", "--untill", "pool"], r"No such option.*--untill"),
    (["recall", "{set}", "--run", "{run}"], r"^--run .*production\.run: write it as NAME=FILE"),
    (["recall", "{set}", "--run", "a={run}", "--run", "a={run}"], r"the name 'a' is used twice$"),
    (["recall", "{set}"], r"^name at least one run: --run NAME=FILE$"),
    (["recall", "{set}", "--run", "a={run}", "--k", "0"], r"^--k 0: cutoffs start at 1$"),
    (["recall", "{set}", "--run", "a={run}", "--k", "five"], r"^--k five: whole numbers, separated by commas"),
    (["recall", "--run", "a={run}"], r"^name one labelled set: SET .* or --qrels FILE$"),
    (["recall", "{set}", "--run", "a={run}", "--relevant-from", "1"], r"is a published version and brings its own"),
    (["recall", "{beir}", "--run", "a={beir}/good.run"], r"^no cutoff: name the k that production serves"),
    (["compare", "{set}", "--run", "a={run}", "--k", "2"], r"^name two runs, --run A=FILE --run B=FILE; 1 given$"),
    (["audit", "{set}", "--run", "a={run}", "--served", "b"], r"^--served b: no run of that name; allowed: a$"),
]


@pytest.mark.parametrize(("arguments", "says"), USAGE, ids=[" ".join(arguments)[:40] for arguments, _ in USAGE])
def test_wrong_usage(goldset: Goldset, harbour: Harbour, beir: Path, arguments: list[str], says: str) -> None:
    run = harbour.path.parent / "production.run"
    names = {"config": harbour.path, "set": _version(harbour), "run": run, "beir": beir}
    before = golden.listing(harbour.path.parent)
    done = goldset(*(argument.format(**names) for argument in arguments))
    assert done.code == 2
    assert re.search(says, done.complaint), done.complaint
    assert len(done.err.splitlines()) == 1
    assert golden.listing(harbour.path.parent) == before


def test_compare_with_too_few_questions(goldset: Goldset, harbour: Harbour) -> None:
    run = harbour.path.parent / "production.run"
    done = goldset("compare", _version(harbour), "--run", f"a={run}", "--run", f"b={run}", "--k", "2", "--json")
    assert done.code == 6
    assert json.loads(done.out)["verdict"] == "too_few_to_tell"


def test_audit_with_too_little_data(goldset: Goldset, harbour: Harbour) -> None:
    done = goldset("audit", _version(harbour), "--json")
    assert done.code == 6
    assert json.loads(done.out)["verdict"] == "insufficient"


@pytest.mark.parametrize(("module", "arguments", "extra"), [
    ("faiss", ["audit", "{beir}", "--with", "dense"], "dense"),
    ("sentence_transformers", ["audit", "{beir}", "--with", "dense"], "dense"),
    ("sqlalchemy", ["publish", "-c", "{config}"], "review"),
    ("fastapi", ["review", "serve", "-c", "{config}", "--port", "0"], "review"),
])
def test_a_missing_extra_is_named(goldset: Goldset, harbour: Harbour, beir: Path, monkeypatch: pytest.MonkeyPatch,
                                  module: str, arguments: list[str], extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # an import of it fails now
    before = golden.listing(harbour.path.parent)
    done = goldset(*(argument.format(beir=beir, config=harbour.path) for argument in arguments))
    assert done.code == 4
    assert re.search(rf"needs the extra '{extra}', which is not installed: pip install 'goldset-rebuilder\[{extra}\]'",
                     done.complaint)
    # The database's own side files come and go with its readers.
    after = golden.listing(harbour.path.parent)
    assert {name for name in after if not name.endswith(("-wal", "-shm"))} == {
        name for name in before if not name.endswith(("-wal", "-shm"))}


def test_init_on_an_empty_folder_and_on_none(goldset: Goldset, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = goldset("init", empty)
    assert done.code == 3
    assert re.search(r"empty: no question log found; it is a \.jsonl, \.csv or \.parquet file", done.complaint)
    assert not list(empty.iterdir())
    done = goldset("init", tmp_path / "nowhere")
    assert done.code == 3
    assert "no such folder" in done.complaint
    (empty / "log.jsonl").write_text("\n".join(golden.log()))
    done = goldset("init", empty)
    assert done.code == 3
    assert "no corpus found" in done.complaint
    assert [path.name for path in empty.iterdir()] == ["log.jsonl"]


def test_interrupted(goldset: Goldset, harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("goldset.pipeline.rebuild", interrupt)
    done = goldset("rebuild", "-c", harbour.path)
    assert done.code == 130
    assert done.complaint == "interrupted; what was finished is kept, run again to resume"
