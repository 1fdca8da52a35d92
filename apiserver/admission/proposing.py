"""`writes: Propose`: what would be a commit with `writes: Commit` is put on a branch for review, and served once that
is merged.

Called by the endpoints, which give the write path this Sink. What is runtime state there is runtime state here. All
else is put down as an intent that proposes; the object stays as it is, and whoever asked is answered as a dry run is,
with a Warning that names the branch. A deletion is refused, with the same text: whoever deletes an object waits for its
end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson

from apiserver.admission.committing import CommitSink
from apiserver.model import origins
from apiserver.model.errors import StatusError, forbidden
from apiserver.model.keys import Key
from apiserver.registry.commits import WAIT
from apiserver.registry.intents import Intent
from apiserver.registry.sinks import Write, Written


class ProposalSink(CommitSink):
    """Of one request, as CommitSink."""

    __slots__ = ()

    def begin(self, write: Write) -> Callable[[], Written]:
        """As Sink.begin. Waiting raises StatusError 403 for what is to be deleted, once that is proposed."""
        write = _outright(write)
        if self._way(write) != "git":
            return super().begin(write)
        self.check(write)
        base = write.live.revision if write.live is not None else 0
        deadline = time.time() + WAIT
        asked = Intent(write.key, self._author, write.value, base, write.sent, deadline=deadline, proposes=True)
        wait = self._commits.begin(asked, self.waiter)
        if write.value is not None:
            return wait

        def refuse() -> Written:
            raise _refused(write.key, "; ".join(wait().warnings))

        return refuse

    def check(self, write: Write) -> None:
        """As Sink.check. Whether a Secret can be proposed the files say, which nobody reads here."""
        super().check(_outright(write))


def _outright(write: Write) -> Write:
    """What marks an object of git's for its end asks for that end: it is not marked before somebody agrees."""
    if not write.aside or write.live is None or write.value is None:
        return write
    metadata = orjson.loads(write.live.value)["metadata"]
    if metadata.get("deletionTimestamp") or not origins.path_in(metadata.get("annotations") or {}):
        return write
    ends = orjson.loads(write.value)["metadata"].get("deletionTimestamp")
    return write._replace(value=None, aside=False) if ends else write


def _refused(key: Key, why: str) -> StatusError:
    resource, _, group = key.resource.partition(":")[0].partition(".")
    return forbidden(resource, group, key.name, why)
