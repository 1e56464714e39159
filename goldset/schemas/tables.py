"""The Arrow schema of every table that crosses a border, and its enumerations.

Each column carries its documentation in the field metadata (key ``doc``), its allowed values (``enum``) and its
range (``min``/``max``); each schema its name, version and key columns. Ids are opaque strings, times are UTC,
offsets are half-open and count Unicode code points of the stored text.
"""

from __future__ import annotations

import pyarrow as pa

VERSION = 1

OFFSET_STATES = ("verified", "located", "stitched", "declared", "mismatched", "absent")
ORIGINS = ("log", "synthetic", "human", "imported", "unknown")
RUN_STATES = ("ok", "empty", "no_tokens", "missing", "failed")
VERDICT_STATES = ("ok", "unparsed", "declined", "truncated", "empty", "failed")
QUEUE_REASONS = ("positive", "rejection", "no_verdict", "no_gold", "second", "adjudication", "carried_check",
                 "divided", "probe", "calibration", "hole", "deep")
HEADINGS = "_headings"
"""Key of ``documents.metadata`` that lists the headings: ``[position, level, title]`` each."""
HOLE = "hole"
"""Reason of a pair that is read because a system serves it."""
CHECK = "carried_check"
"""Reason of a pair whose answer comes from an earlier rebuild and is read again, blind."""
DEEP = "deep_"
"""Prefix of the strata of the deep probe: what stands below the pool's depth, or in a system that did not feed it."""
LABEL_ACTIONS = ("label", "retract", "evidence", "note")
LABEL_REASONS = ("cant_tell", "later")
LABEL_ORIGINS = ("page", "import", "carried")
EVIDENCE_SOURCES = ("selected", "quote", "whole_span", "imported")
BASES = ("human", "adjudicated", "imported", "searched")
VERDICT_WORDS = ("pass", "warn", "fail", "insufficient")
CHECKS = ("integrity", "circularity", "leakage", "k_mismatch", "completeness")

_TIME = pa.timestamp("us", tz="UTC")
RANGE = pa.struct([("start", pa.int64()), ("end", pa.int64())])
TURN = pa.struct([("role", pa.string()), ("text", pa.string())])
RANK = pa.struct([("system", pa.string()), ("rank", pa.int32())])
REASON_COUNT = pa.struct([("reason", pa.string()), ("count", pa.int64())])


def _col(name: str, kind: pa.DataType, doc: str, *, null: bool = False, enum: tuple[str, ...] = (),
         low: float | None = None, high: float | None = None) -> pa.Field:
    meta = {"doc": doc}
    if enum:
        meta["enum"] = "|".join(enum)
    if low is not None:
        meta["min"] = repr(low)
    if high is not None:
        meta["max"] = repr(high)
    return pa.field(name, kind, nullable=null, metadata=meta)


def _schema(name: str, key: tuple[str, ...], *columns: pa.Field) -> pa.Schema:
    return pa.schema(columns, metadata={"table": name, "key": ",".join(key), "version": str(VERSION)})


_S, _T = pa.string(), pa.large_string()

SCHEMAS: dict[str, pa.Schema] = {}
for _table in (
    _schema(
        "documents", ("doc_id",),
        _col("doc_id", _S, "opaque id of the document"),
        _col("text", _T, "stored text, not normalised; null where only chunks exist", null=True),
        _col("title", _S, "title as indexed", null=True),
        _col("url", _S, "where people find it", null=True),
        _col("sha256", _S, "SHA-256 of the stored text; null without text", null=True),
        _col("metadata", _S, "JSON object that filters and access rules read"),
    ),
    _schema(
        "chunks", ("chunk_id",),
        _col("chunk_id", _S, "opaque id that runs name"),
        _col("doc_id", _S, "document it was cut from"),
        _col("start", pa.int64(), "first code point in the document; null if offsets are absent", null=True, low=0),
        _col("end", pa.int64(), "one past the last code point", null=True, low=0),
        _col("text", _T, "text as indexed, header included"),
        _col("body_start", pa.int64(), "length of a title or header the indexer put before the body", low=0),
        _col("offsets", _S, "how far start and end can be trusted: verified (text[body_start:] == doc[start:end]), "
             "located in order, stitched from neighbours, declared (lengths agree, no document to verify), "
             "mismatched (declared, lengths disagree), absent", enum=OFFSET_STATES),
    ),
    _schema(
        "events", ("source", "line"),
        _col("source", _S, "log file, as named in the config"),
        _col("line", pa.int64(), "line number in that file, from 1", low=1),
        _col("text", _S, "text as typed, personal data masked"),
        _col("query", _S, "string that production sent to retrieval; null = the text", null=True),
        _col("context", pa.list_(TURN), "earlier turns of the conversation, oldest first"),
        _col("session", _S, "session or conversation", null=True),
        _col("user", _S, "pseudonymous user", null=True),
        _col("agent", _S, "user agent or client", null=True),
        _col("time", _TIME, "when it was asked", null=True),
        _col("scope", _S, "JSON object of filters as sent"),
        _col("masked", pa.int32(), "pieces of personal data masked in text and context", low=0),
    ),
    _schema(
        "drops", ("reason",),
        _col("reason", _S, "why log lines did not reach the sample (kept = they did)"),
        _col("lines", pa.int64(), "log lines", low=0),
        _col("example", _S, "one masked example", null=True),
    ),
    _schema(
        "questions", ("question_id",),
        _col("question_id", _S, "hash of question_key and context"),
        _col("text", _S, "as typed, personal data masked"),
        _col("context", pa.list_(TURN), "earlier turns, oldest first"),
        _col("query", _S, "string sent to retrieval; default the text"),
        _col("need", _S, "the information need in one sentence", null=True),
        _col("scope", _S, "JSON object: tenant, locale, filters as sent"),
        _col("language", _S, "ISO 639-1 code, or und where it cannot be told"),
        _col("origin", _S, "where the question comes from", enum=ORIGINS),
        _col("asked_first", _TIME, "first event in the window", null=True),
        _col("asked_last", _TIME, "last event in the window", null=True),
        _col("times_asked", pa.int64(), "events of this question in the window", null=True, low=1),
        _col("draws", pa.int64(), "sampled events of this question", low=1),
        _col("u", pa.float64(), "smallest permanent random number of its events", null=True, low=0, high=1),
        _col("inclusion_prob", pa.float64(), "chance of a draw of this text", null=True, low=0, high=1),
        _col("traffic_weight", pa.float64(), "weight of this question in traffic-weighted means", low=0),
        _col("cluster_id", _S, "near-duplicate cluster: the unit of variance"),
        _col("session_cluster", _S, "session of its first event", null=True),
        _col("stratum", _S, "sampling stratum"),
    ),
    _schema(
        "run", ("system", "question_id", "rank"),
        _col("system", _S, "retriever with its settings"),
        _col("family", _S, "systems that share a model or an index; a hybrid is the union of its parts, a+b"),
        _col("question_id", _S, "question"),
        _col("rank", pa.int32(), "from 1, dense, no repeats; decides the order", low=1),
        _col("chunk_id", _S, "returned chunk"),
        _col("score", pa.float64(), "the system's own score; null where it gives none", null=True),
    ),
    _schema(
        "run_status", ("system", "question_id"),
        _col("system", _S, "retriever"),
        _col("question_id", _S, "question"),
        _col("status", _S, "ok, empty (answered with nothing), no_tokens (nothing to search for), missing "
             "(not in the run file), failed", enum=RUN_STATES),
        _col("returned", pa.int32(), "length of the list", low=0),
        _col("detail", _S, "what failed", null=True),
    ),
    _schema(
        "spans", ("span_id",),
        _col("span_id", _S, "doc_id#start-end, or doc_id#chunk_id where offsets are absent"),
        _col("doc_id", _S, "document"),
        _col("start", pa.int64(), "first code point; null if offsets are absent", null=True, low=0),
        _col("end", pa.int64(), "one past the last code point", null=True, low=0),
        _col("text", _T, "text of the span"),
        _col("heading", _S, "heading path, ' > ' between levels", null=True),
        _col("doc_sha256", _S, "hash of the document version; null without document text", null=True),
        _col("text_hash", _S, "content hash of the text"),
        _col("twin_group", _S, "smallest span_id among the spans with the same twin_key"),
        _col("words", pa.int64(), "words a person reads", low=0),
        _col("offsets", _S, "weakest offset state of its chunks", enum=OFFSET_STATES),
    ),
    _schema(
        "span_links", ("chunk_id", "span_id"),
        _col("chunk_id", _S, "chunk"),
        _col("span_id", _S, "span"),
        _col("chunk_share", pa.float64(), "share of the chunk's body that lies in the span", low=0, high=1),
        _col("span_share", pa.float64(), "share of the span that the chunk covers", low=0, high=1),
    ),
    _schema(
        "candidates", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "canonical span; the representative of its twin group"),
        _col("best_ranks", pa.list_(RANK), "best rank per system, by system name"),
        _col("systems", pa.list_(_S), "systems that returned it, by name"),
        _col("families", pa.list_(_S), "elementary families that returned it, by name"),
    ),
    _schema(
        "deep_draws", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span that the pool lacks; the representative of its twin group"),
        _col("best_ranks", pa.list_(RANK), "best rank per system, by system name"),
        _col("window", pa.int64(), "spans of the question from which pairs were drawn", low=1),
        _col("drawn", pa.int64(), "pairs of the question that were drawn", low=1),
        _col("u", pa.float64(), "permanent random number of the pair", low=0, high=1),
    ),
    _schema(
        "verdicts", ("question_id", "span_id", "judge_id", "vote", "attempt"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("judge_id", _S, "judge: model with its prompt and rubric"),
        _col("vote", pa.int32(), "vote number, from 1", low=1),
        _col("attempt", pa.int32(), "attempt within the vote, from 1", low=1),
        _col("status", _S, "ok, or why there is no verdict", enum=VERDICT_STATES),
        _col("relevant", pa.bool_(), "verdict; null unless status is ok", null=True),
        _col("score", pa.float64(), "graded judges: the score behind the verdict", null=True),
        _col("quote", _S, "sentence the judge points to", null=True),
        _col("raw", _S, "raw answer", null=True),
        _col("cache_key", _S, "hash of everything that can change the verdict"),
        _col("prompt_hash", _S, "hash of the prompt and rubric files"),
        _col("model_asked", _S, "model as asked for", null=True),
        _col("model_answered", _S, "model as the server named it", null=True),
        _col("prompt_tokens", pa.int64(), "tokens sent", null=True, low=0),
        _col("completion_tokens", pa.int64(), "tokens received", null=True, low=0),
        _col("cost", pa.float64(), "in the configured currency", null=True, low=0),
        _col("cached", pa.bool_(), "answered from the verdict store"),
    ),
    _schema(
        "queue", ("item_id",),
        _col("item_id", _S, "hash of campaign, wave, reason, question and span"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("campaign", _S, "rebuild, calibration, probe …"),
        _col("wave", pa.int32(), "from 1", low=1),
        _col("reason", _S, "why people are asked", enum=QUEUE_REASONS),
        _col("stratum", _S, "sampling stratum; where everything is read the reason, for a hole with the systems that "
             "serve it"),
        _col("stratum_size", pa.int64(), "pairs in the stratum", low=1),
        _col("u", pa.float64(), "permanent random number of the pair", low=0, high=1),
        _col("order", pa.int64(), "presentation order: questions shuffled, items shuffled within", low=0),
    ),
    _schema(
        "labels", ("label_id",),
        _col("label_id", _S, "opaque, unique"),
        _col("item_id", _S, "queue item that asked; null if nobody asked (search box, import)", null=True),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("span_text_hash", _S, "content hash of the text that was read"),
        _col("rubric_version", _S, "major.minor"),
        _col("campaign", _S, "rebuild, calibration, probe …"),
        _col("assessor", _S, "who"),
        _col("action", _S, "label, retract, evidence, note", enum=LABEL_ACTIONS),
        _col("relevant", pa.bool_(), "null with a reason", null=True),
        _col("reason", _S, "why relevant is null", null=True, enum=LABEL_REASONS),
        _col("evidence", pa.list_(RANGE), "sentence ranges in the document that answer"),
        _col("evidence_source", _S, "how the evidence was given", null=True, enum=EVIDENCE_SOURCES),
        _col("supersedes", _S, "label_id that this row corrects", null=True),
        _col("origin", _S, "page, import, carried", enum=LABEL_ORIGINS),
        _col("note", _S, "free text", null=True),
        _col("seconds", pa.float64(), "reading time measured by the page", null=True, low=0),
        _col("time", _TIME, "when it was acknowledged"),
    ),
    _schema(
        "decisions", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("relevant", pa.bool_(), "people's decision; null = open, in conflict, or cannot be told", null=True),
        _col("status", _S, "decided, cant_tell, conflict (two people differ, nobody adjudicated), open",
             enum=("decided", "cant_tell", "conflict", "open")),
        _col("basis", _S, "human, adjudicated, imported, searched", enum=BASES),
        _col("evidence", pa.list_(RANGE), "union of the evidence of the deciding labels"),
        _col("evidence_source", _S, "how the evidence was given", null=True, enum=EVIDENCE_SOURCES),
        _col("label_ids", pa.list_(_S), "labels behind it, sorted"),
    ),
    _schema(
        "judgments", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("relevant", pa.bool_(), "people's decision; null = read, cannot be told, or unjudged in an import",
             null=True),
        _col("grade", pa.int32(), "imported grade", null=True),
        _col("basis", _S, "human, adjudicated, imported, searched", enum=BASES),
        _col("inclusion_prob", pa.float64(), "chance with which people were asked", low=0, high=1),
        _col("stratum", _S, "sampling stratum of the pair", null=True),
        _col("label_ids", pa.list_(_S), "labels behind it"),
    ),
    _schema(
        "gold", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "span"),
        _col("evidence", pa.list_(RANGE), "sentence ranges that answer; empty = missing"),
        _col("evidence_source", _S, "how the evidence was given", null=True, enum=EVIDENCE_SOURCES),
        _col("facet", _S, "part of the need it answers; null = its own", null=True),
        _col("weight", pa.float64(), "1 / inclusion_prob", low=1),
        _col("twin_group", _S, "spans with the same text"),
    ),
    _schema(
        "deliveries", ("question_id", "span_id"),
        _col("question_id", _S, "question"),
        _col("span_id", _S, "gold span"),
        _col("rank", pa.int32(), "smallest cut of the served list that delivers it; null = not in the list, or "
             "unknown where low and high differ", null=True, low=1),
        _col("rank_low", pa.int32(), "the same under the strict reading (for recall_low)", null=True, low=1),
        _col("rank_high", pa.int32(), "the same under the lenient reading (for recall_high)", null=True, low=1),
        _col("basis", _S, "evidence, id (same chunking), span_rule (evidence missing: both readings)",
             enum=("evidence", "id", "span_rule")),
    ),
    _schema(
        "findings", ("check", "subject", "reason"),
        _col("check", _S, "which check: integrity, circularity, leakage, k_mismatch, completeness, or a further one"),
        _col("subject", _S, "system, question or file, or all"),
        _col("verdict", _S, "pass, warn, fail, insufficient", enum=VERDICT_WORDS),
        _col("reason", _S, "the check's word for it: truncated, leak, low …"),
        _col("measured", pa.float64(), "the number", null=True),
        _col("low", pa.float64(), "lower end of its interval", null=True),
        _col("high", pa.float64(), "upper end", null=True),
        _col("threshold", pa.float64(), "what it was held against", null=True),
        _col("n", pa.int64(), "what it rests on", low=0),
        _col("message", _S, "one sentence a person can act on"),
        _col("remedy", _S, "the next step", null=True),
    ),
    _schema(
        "measurements", ("system", "measure", "k", "slice"),
        _col("system", _S, "scored system"),
        _col("measure", _S, "name in the registry"),
        _col("k", pa.int32(), "cutoff; null where it has none", null=True, low=1),
        _col("slice", _S, "all, or column=value"),
        _col("value", pa.float64(), "null with a reason", null=True),
        _col("reason", _S, "why the value is null", null=True),
        _col("n", pa.int64(), "questions it rests on", low=0),
        _col("excluded", pa.list_(REASON_COUNT), "questions left out, by reason"),
        _col("low", pa.float64(), "lower end of the 95 % interval", null=True),
        _col("high", pa.float64(), "upper end", null=True),
        _col("method", _S, "how the interval was made", null=True),
        _col("weighting", _S, "events, traffic, none"),
        _col("gold_version", _S, "set and version", null=True),
    ),
):
    SCHEMAS[_table.metadata[b"table"].decode()] = _table
