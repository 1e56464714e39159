"""Prefect around the pipeline: schedules, tasks, progress, artifacts. The work itself is in goldset.

The settings below are defaults: what is set in the environment wins. They keep Prefect's server local (embedded unless
PREFECT_API_URL names one), quiet, and without telemetry.
"""

import os
from pathlib import Path

for _name, _value in {
    "PREFECT_HOME": str(Path(".prefect").resolve()),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # Our own error says what to do in one sentence; Prefect's would put two tracebacks before it.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
}.items():
    os.environ.setdefault(_name, _value)
