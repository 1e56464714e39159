"""People's decisions -> a published, versioned set; exports; differences between versions."""

from goldset.gold.carry import carry_decisions, evidence_spans
from goldset.gold.difference import diff_versions
from goldset.gold.exports import export_set, project
from goldset.gold.follow import Followed, follow_edits
from goldset.gold.judgments import GoldTables, build_gold
from goldset.gold.reanchor import Anchor, counts_of, reanchor
from goldset.gold.version import content_hash_of, latest_version, version_paths, write_version

__all__ = ["Anchor", "Followed", "GoldTables", "build_gold", "carry_decisions", "content_hash_of", "counts_of",
           "diff_versions", "evidence_spans", "export_set", "follow_edits", "latest_version", "project", "reanchor",
           "version_paths", "write_version"]
