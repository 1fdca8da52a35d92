"""Intents: writes that the API took and that are to be commits before they are done.

Put into the store by the API worker (commits.py) and by controllers; served by the reconciler, git's only writer, which
answers in the transaction that writes the object. The intent of an object is one key, so it reserves the object:
whoever wants to change it meanwhile waits.

    worker      write(Check(object, 7), Put(intent, NEVER))
    reconciler  commit 5d3e…; write(Put(object, expect 7), Put(answer), Delete(intent))
    worker      reads the answer at revision n: the object's is n - 1

One that *proposes* is to be a commit of a branch that nobody is served from, so it leaves its object as it is, reserves
nothing and stands apart: who judges or makes commits of the desired branch does not meet it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal, Key
from apiserver.model.tables import Table
from apiserver.storage.protocol import ABSENT, NEVER, Check, Delete, Op, Put, PutRow, ReadView, Record

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be committed of one object.

    `author`: the user's name. `value`: the object as it shall be stored, None: it goes. `base`: the revision that it
    was made from (NEVER: it is new). `sent`: a new object as the client sent it. `also`: operations that belong to the
    object's transaction. `deadline`: seconds since 1970 after which nobody waits any more; 0: nobody waits at all, so
    there is no answer. `revision`: the intent's own, once it is read from the store. `proposes`: see the module's head.
    """

    key: Key
    author: str
    value: bytes | None
    base: int
    sent: Object | None = None
    also: Sequence[Op] = ()
    deadline: float = 0.0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    revision: int = 0
    proposes: bool = False

    @property
    def place(self) -> Key:
        """Where it stands. Of an object an author has one proposal at a time, whatever others propose."""
        return _proposed_key(self.key, self.author) if self.proposes else intent_key(self.key)

    @property
    def verb(self) -> str:
        if self.value is None:
            return "delete"
        return "update" if self.base else "create"

    def ops(self) -> tuple[Op, Op]:
        """What puts the intent into the store: only if the object is as it was, and nobody else has one for it."""
        return Put(self.place, self.encode(), NEVER), Check(self.key, self.base)

    def encode(self) -> bytes:
        found = {
            "key": list(self.key),
            "author": self.author,
            "value": None if self.value is None else self.value.decode(),
            "base": self.base,
            "sent": self.sent,
            "also": [_op_json(op) for op in self.also],
            "deadline": self.deadline,
            "id": self.id,
        }
        return bytes(memoryview(orjson.dumps(found)))

    @staticmethod
    def decode(record: Record) -> Intent:
        found = orjson.loads(record.value)
        return Intent(
            key=Key(*found["key"]),
            author=found["author"],
            value=None if found["value"] is None else found["value"].encode(),
            base=found["base"],
            sent=found["sent"],
            also=[_op(each) for each in found["also"]],
            deadline=found["deadline"],
            id=found["id"],
            revision=record.revision,
            proposes=record.key.resource == Internal.PROPOSED,
        )

    def answered(self, answer: Object) -> list[Op]:
        """The operations that end the intent. An answer `done` stands right behind the operation on the object."""
        ended: Op = Delete(self.place, self.revision)
        if not self.deadline:
            return [ended]
        told = orjson.dumps({**answer, "until": self.deadline})
        return [Put(answer_key(self.id), bytes(memoryview(told))), ended]


DONE: Object = {"done": True}
"""The answer to an intent whose object was written by the operation before the answer's."""
KEPT: Object = {"kept": True}
"""The answer to an intent that left the object as it is."""
AGAIN: Object = {"again": True}
"""The answer to an intent whose object another writer changed first."""


def proposed(text: str) -> Object:
    """The answer to an intent that proposes: what its author is to know of it."""
    return {"proposed": text}


def refused(error: StatusError) -> Object:
    """The answer to an intent that cannot be done."""
    return {"code": error.code, "reason": error.reason, "message": error.message, "details": error.details}


_LATE = 60.0
"""Seconds after which whoever waited for an answer is not about to read it: he waits no longer than his deadline."""


def is_unread(answer: Record, now: float) -> bool:
    """Whether nobody comes for an answer any more. `now`: seconds since 1970."""
    return bool(orjson.loads(answer.value).get("until", 0.0) + _LATE < now)


def waiting(store: ReadView, limit: int | None = None) -> list[Intent]:
    """Intents that are to be served, the first ones by key; all, unless there is a limit."""
    return [Intent.decode(record) for record in store.scan(Internal.INTENT, limit=limit, count=False).records]


def proposing(store: ReadView, limit: int | None = None) -> list[Intent]:
    """The same of those that propose."""
    return [Intent.decode(record) for record in store.scan(Internal.PROPOSED, limit=limit, count=False).records]


def stands(store: ReadView, intent: Intent) -> bool:
    """Whether an intent that was read waits still: it was neither answered nor withdrawn."""
    record = store.get(intent.place)
    return record is not None and record.revision == intent.revision


def fits(store: ReadView, intent: Intent) -> bool:
    """Whether what belongs to its object's transaction can be written as things stand."""
    return all(_fits(store, op) for op in intent.also)


def places(intent: Intent) -> frozenset[tuple[object, ...]]:
    """What else than its object an intent writes: no two of a transaction may have one of them in common."""
    return frozenset((op.table, op.row) if isinstance(op, PutRow) else op.key for op in intent.also if _is_put(op))


def intent_key(key: Key) -> Key:
    """Where the intent of an object stands. A digest: keys of the store are short."""
    return Key(Internal.INTENT, key.cluster, "", _digest(key))


def _proposed_key(key: Key, author: str) -> Key:
    return Key(Internal.PROPOSED, key.cluster, "", _digest(key, author))


def _digest(key: Key, *besides: str) -> str:
    text = "\0".join((key.resource, key.namespace, key.name, *besides))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def answer_key(intent: str) -> Key:
    return Key(Internal.ANSWER, "", "", intent)


def _is_put(op: Op) -> TypeGuard[Put | PutRow]:
    return isinstance(op, Put | PutRow)


def _fits(store: ReadView, op: Op) -> bool:
    if not _is_put(op) or op.expect is None:
        return True
    if isinstance(op, PutRow):
        return store.get_row(op.table, op.row) == (None if op.expect is ABSENT else op.expect)
    record = store.get(op.key)
    return (record.revision if record is not None else NEVER) == op.expect


def _op_json(op: Op) -> Object:
    if isinstance(op, PutRow):
        expect = None if op.expect in (None, ABSENT) else bytes(op.expect).decode()
        return {
            "table": op.table,
            "row": op.row,
            "value": op.value.decode(),
            "expect": expect,
            "any": op.expect is None,
        }
    if not isinstance(op, Put):
        raise TypeError(f"{type(op).__name__} cannot go with an intent")
    return {"key": list(op.key), "value": op.value.decode(), "expect": op.expect}


def _op(found: Object) -> Op:
    if "table" in found:
        expect = None if found["any"] else ABSENT if found["expect"] is None else found["expect"].encode()
        return PutRow(Table(found["table"]), found["row"], found["value"].encode(), expect)
    return Put(Key(*found["key"]), found["value"].encode(), found["expect"])
