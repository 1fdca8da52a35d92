"""A record of the log as one line, as text or as JSON.

Much of what is logged strangers chose: names, messages of commits, what their clusters answer. So no character gets
through that is not to be seen as itself (control characters, line separators, changes of the writing's direction), no
line is longer than a bound, and of an error that nobody expected there is what and where, not its text
(model/failures). What looks like a password in a URL is left out wherever it comes from: whoever logs leaves it out
before, and this is the second look.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from apiserver.logs.requestids import REQUEST
from apiserver.model.failures import described
from apiserver.model.redaction import redact

FORMATS = ("text", "json")
_HEAD, _TAIL = 2000, 4000
"""Characters of a message: its beginning, and its end, where a stack has its fault."""
_LOOKED_AT = 8000
_NAME = 100


class LogLines(logging.Formatter):
    """`process`: whose lines these are."""

    def __init__(self, process: str, form: str) -> None:
        super().__init__()
        self._process, self._json = process, form == "json"

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level, logger, message = record.levelname.lower(), _cut(record.name), _said(record)
        request, left = REQUEST.get(), getattr(record, LEFT_OUT, 0)
        if not self._json:
            end = f" request={request}" if request else ""
            end += f" left_out={left}" if left else ""
            return f"{when} {level} {self._process} {harmless(logger)}: {harmless(message)}{end}"
        found: dict[str, object] = {"time": when, "level": level, "process": self._process, "pid": record.process}
        found |= {"logger": logger, "message": message}
        found |= {"request": request} if request else {}
        found |= {LEFT_OUT: left} if left else {}
        return json.dumps(found).replace("\x7f", "\\u007f")  # all that is not ASCII is escaped by itself


LEFT_OUT = "left_out"
"""On a record: how many like it before were not logged, since there were too many."""


def harmless(text: str) -> str:
    """What cannot be seen as itself is spelled as Python would."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def _said(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # a fault of whoever logs, which shall not end what it does
        text = f"{record.msg} (its arguments do not fit)"
    if record.name == "asyncio":
        text = text.partition("\n")[0]  # below it there is what failed, with the error's text
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        text = f"{text}\n{described(error)}"
    text = _middle_cut(text, _LOOKED_AT, _LOOKED_AT)
    if "@" in text or "?" in text:
        text = redact(text)  # before it is cut: half of a password is told apart from nothing
    return _middle_cut(text, _HEAD, _TAIL)


def _middle_cut(text: str, head: int, tail: int) -> str:
    return text if len(text) <= head + tail else f"{text[:head]}…{text[-tail:]}"


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[:_NAME]}…"
