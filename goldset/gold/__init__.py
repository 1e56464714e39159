"""People's decisions -> a published, versioned set; exports; differences between versions."""

from goldset.gold.difference import diff_versions
from goldset.gold.exports import export_set
from goldset.gold.judgments import GoldTables, build_gold
from goldset.gold.version import content_hash_of, latest_version, version_paths, write_version

__all__ = ["GoldTables", "build_gold", "content_hash_of", "diff_versions", "export_set", "latest_version",
           "version_paths", "write_version"]
