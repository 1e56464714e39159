"""The demo's story: audit a flattering set, rebuild it, replay the readers, publish, audit again, before and after.

A sequence that is handed a runner: ``goldset demo`` hands it the plain one, ``python -m flows.demo`` Prefect's.
Nothing here is special to the demo's numbers: each is computed by the code that any set goes through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from goldset.config import Config, load_config
from goldset.formats.sets import LabelledSet
from goldset.pipeline import story
from goldset.pipeline.checks import Given, audit_any
from goldset.pipeline.corrections import Step
from goldset.pipeline.people import open_review, publish, replay_review
from goldset.pipeline.runner import Runner, Say, plain, rebuild, silent
from goldset.resources import resource

Show = Callable[[str], None]


@dataclass(frozen=True)
class Story:
    """How the demo ended: the content hash of the version and the before-and-after table."""

    content_hash: str
    table: str


def demo_config(keep: Path) -> Config:
    """The demo's configuration, working in ``keep``."""
    return load_config(resource("configs/demo.toml"), project={"workspace": str(keep.resolve())})


def unread_config(keep: Path) -> Config:
    """The same with a review database of its own: the queue as it was opened, for whoever wants to try the page."""
    return load_config(resource("configs/demo.toml"), project={"workspace": str(keep.resolve())},
                       review={"database": f"sqlite:///{keep.resolve() / 'try.sqlite'}"})


def tell(*, keep: str | Path | None = None, runner: Runner = plain, say: Say = silent, show: Show = silent) -> Story:
    """Run the story in the folder ``keep`` (default workspace/demo); what is there already is reused."""
    folder = Path(keep) if keep else Path("workspace") / "demo"
    config = demo_config(folder)
    scoring = config.scoring
    evaluated, served = scoring.evaluated_k or scoring.served_k, scoring.served_k

    old, old_runs = _old_set(scoring.system)
    show(story.heading(1, "The old set, as teams build them"))
    show(story.opening(old, config))
    outcome = runner("audit-old-set", lambda: audit_any(
        old, old_runs, given=Given(logs=resource("data/demo/queries.jsonl"), logs_text="q"), eval_k=evaluated,
        retrieve_k=scoring.retrieved_k, serving_k=served, families={scoring.system: config.family(scoring.system)}))
    outcome.write_html(folder / "old-set.html")
    show(f"\n{outcome.brief()}")

    show(story.heading(2, "The rebuild: from the search log to a queue for people"))
    artifacts = rebuild(config, runner=runner, quiet=False, say=say)
    show(story.rebuilt(config, artifacts, open_review(config, artifacts)))

    show(story.heading(3, "People: the recorded readers answer wave by wave"))
    answered = runner("replay", lambda: replay_review(config, say=say))
    show(story.answered(answered))
    published = publish(config, runner=runner, say=say)
    show(story.measured_judge(published))

    show(story.heading(4, "The published version, audited in its turn"))
    show(published.brief())
    if weakness := story.own_weakness(published):
        show(weakness)

    show(story.heading(5, "Before and after: what the old headline was made of"))
    table = story.table([Step(**row) for row in published.manifest["supersedes"]["steps"]])
    show(table)
    show(story.corrected(published, scoring.system, served))
    show(story.reading(published))
    show(story.closing(folder, folder / published.path.relative_to(folder.resolve()) / "report.html"))
    return Story(published.manifest["content_hash"], table)


def _old_set(system: str) -> tuple[LabelledSet, dict[str, pa.Table]]:
    from goldset.formats.runs import read_run
    from goldset.formats.sets import load_set

    return load_set(resource("data/demo/old_set")), {
        system: read_run(resource("data/demo/old_set_production.run.gz"), system=system)}
