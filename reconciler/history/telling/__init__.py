"""What log, blame and trace found, as text, JSON or YAML. Called by the commands.

Every form makes harmless what strangers wrote: names, values, authors, subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.history.result import FleetLog, ObjectBlame, ObjectTrace
from reconciler.history.telling import structured, text

Told = FleetLog | ObjectBlame | tuple[ObjectTrace, ...]

FORMS: Mapping[str, Callable[[Any], str]] = {
    "text": text.told,
    "json": structured.as_json,
    "yaml": structured.as_yaml,
}
"""By the name that `-o` takes: a function of what was found."""
