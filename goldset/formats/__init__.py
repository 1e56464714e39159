"""The outside world: logs, corpora, TREC, BEIR, exports. The only place that knows foreign names."""
