"""What is posted of a commit to a URL: a JSON document, signed.

An announcer (announcements). docs/reviews.md has the document's schema. Its id follows from the fleet, the branch and
the commit, so it is the same when the document is sent again, and when something else became of the commit later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson

from reconciler.controllers.announcements import Announcement
from reconciler.forges.notification import Notified
from reconciler.plan.outcome import CommitOutcome

EVENT = "commit"
VERSION = 1


class CommitHook:
    """`secret`: that of the signature, as it is now."""

    def __init__(self, notified: Notified, secret: Callable[[], str]) -> None:
        self._notified, self._secret = notified, secret

    def __call__(self, outcome: CommitOutcome) -> Iterator[Announcement]:
        if not outcome.partial:
            body = orjson.dumps(document(outcome))
            post = partial(self._post, delivery_of(outcome), body)
            yield Announcement(EVENT, hashlib.sha256(body).hexdigest(), post)

    def _post(self, delivery: str, body: bytes) -> None:
        self._notified.post(EVENT, delivery, body, self._secret())


def delivery_of(outcome: CommitOutcome) -> str:
    return hashlib.sha256("\0".join((outcome.fleet, outcome.branch, outcome.commit)).encode()).hexdigest()[:32]


def document(outcome: CommitOutcome) -> dict[str, Any]:
    return {
        "version": VERSION,
        "id": delivery_of(outcome),
        "fleet": outcome.fleet,
        "branch": outcome.branch,
        "commit": outcome.commit,
        "pushedBy": outcome.pushed_by.as_json() or None,
        "state": "success" if outcome.good else "failure",
        "problems": list(outcome.problems),
        "counts": dict(outcome.counts),
        "workspaces": [
            {"path": each.path, "became": each.became, "mended": each.mended, "errors": list(each.errors)}
            for each in outcome.workspaces
        ],
        "omitted": outcome.untold,
    }
