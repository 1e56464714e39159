"""The set that a version replaces: its audit and its headline, taken apart, for the version's manifest and report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow as pa

from goldset.config import Config
from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.pipeline.corrections import corrections


def superseded(config: Config, new: LabelledSet, run: pa.Table) -> dict[str, Any] | None:
    """[supersedes], the new version and production's run for it -> the manifest's key; None where nothing is replaced.

    Keys: set (its name), verdicts (property -> verdict of its audit, with the new version as reference for leakage),
    steps (rows of table corrections).

    Raises:
        DataError: the old set or its run cannot be read.
    """
    from goldset.audit import by_check
    from goldset.formats.runs import read_run
    from goldset.formats.sets import load_set
    from goldset.pipeline.checks import Given, audit_any

    section, scoring = config.supersedes, config.scoring
    if section is None:
        return None
    old = load_set(config.path(section.set), relevant_from=section.relevant_from)
    if not len(old.gold):
        raise DataError(f"[supersedes] set {section.set}: no question has a relevant passage, so there is no headline "
                        "to take apart; check relevant_from, or leave the section out")
    old_run = read_run(config.path(section.run), system=scoring.system)
    quoted = scoring.evaluated_k or scoring.served_k
    outcome = audit_any(old, {scoring.system: old_run}, given=Given(reference=new), eval_k=quoted,
                        retrieve_k=scoring.retrieved_k, serving_k=scoring.served_k,
                        families={scoring.system: config.family(scoring.system)}, quiet=True)
    steps = corrections(old, old_run, new, run, evaluated=quoted, served=scoring.served_k, within=section.found_within)
    return {"set": old.label, "verdicts": by_check(outcome.findings), "steps": [asdict(step) for step in steps]}
