"""``goldset judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from goldset.cli.common import config_option, json_option, result, result_json


@click.group("judge")
def command() -> None:
    """The judge as an instrument: calibration and card."""


@command.command("calibrate")
@config_option
@json_option
def calibrate(config_path: Path, as_json: bool) -> None:
    """Compute the judge's threshold from people's labels, where it has one, and show what it rests on."""
    from goldset.config import ThresholdJudge, load_config
    from goldset.errors import UsageError
    from goldset.judges import VerdictStore, build_judge
    from goldset.store import Workspace

    config = load_config(config_path)
    if not isinstance(config.judge, ThresholdJudge):
        raise UsageError(f"[judge] kind = \"{config.judge.kind}\" answers yes or no and has no threshold to calibrate; "
                         "'goldset judge card' measures it against people")
    workspace = Workspace(config.workspace).open()
    judge = build_judge(config=config, cache=workspace.cache("embeddings").parent,
                        store=VerdictStore(workspace.root / "verdicts.sqlite"))
    info = judge.card_info()
    if as_json:
        result_json({"schema": "goldset.judge_calibration/1", **info})
        return
    found = info["calibration"]
    result(f"{info['judge_id']}\n  threshold {info['threshold']:.4f} from {found['tp'] + found['fn']} relevant and "
           f"{found['fp'] + found['tn']} other pairs\n  in that sample: sensitivity "
           f"{found['sensitivity_in_sample']:.2f}, specificity {found['specificity_in_sample']:.2f}\n"
           f"  {'declared weak: ' if info['declared_weak'] else ''}people read its positives and a sample of its "
           "rejections")


@command.command("card")
@config_option
@json_option
def card(config_path: Path, as_json: bool) -> None:
    """The judge measured against people's labels of the last rebuild, weighted back to the pool."""
    from goldset.config import load_config
    from goldset.pipeline import finished, store_of
    from goldset.pipeline.decided import decided
    from goldset.pipeline.manifest import judge_card

    config = load_config(config_path)
    artifacts = finished(config)
    store = store_of(config, artifacts)
    found = judge_card(config, artifacts, decided(config, artifacts, queue=store.queue(), labels=store.labels()))
    if as_json:
        result_json(found)
    else:
        result(card_text(found))


def card_text(found: dict[str, Any]) -> str:
    """The judge card on a terminal."""
    lines = [f"judge card: {found['judge']['judge_id']}", *(f"  {sentence}" for sentence in found["sentences"])]
    if found["weighted"] is not None:
        for name in ("sensitivity", "specificity", "kappa", "agreement", "bias"):
            row = found["weighted"][name]
            value = "unknown" if row["value"] is None else f"{row['value']:.3f}"
            ends = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(f"  {name:<12} {value}{ends}, weighted back to the pool")
    lines += [f"  missed of what {row['system']} returned: "
              + ("unknown" if row["value"] is None else f"{row['value']:.3f} of {row['n']}")
              for row in found["miss_rate_by_system"]]
    return "\n".join([*lines, *(f"  {sentence}" for sentence in found["independence"])])
