"""Who asks for much keeps nobody waiting who asks for little; and answers that nobody fetches do not stay."""

from __future__ import annotations

import orjson
from support.commitfleet import CommitFleet, a_configmap

from apiserver.model.keys import Internal, Key
from apiserver.registry.intents import DONE, Intent, answer_key
from reconciler.loading.rounds import RoundSettings
from reconciler.loading.unfetched import Unfetched

FLOOD = 300


def ask(fleet: CommitFleet, path: str, author: str, *names: str) -> None:
    cluster, written = fleet.record(path).cluster, []
    for name in names:
        obj = {**a_configmap(name), "metadata": {"name": name, "namespace": "default"}}
        key = Key("configmaps", cluster, "default", name)
        written.append(fleet.store.write(*Intent(key, author, orjson.dumps(obj), 0, sent=obj).ops()))
    for each in written:
        each.result()


def test_a_flood_lets_others_through(idle: CommitFleet) -> None:
    """Whichever workspace stands first in the store."""
    ask(idle, "root:a", "mallory", *(f"m{n}" for n in range(FLOOD)))
    ask(idle, "root:b", "alice", "hers")
    idle.committer.serve()
    turn = RoundSettings().writes
    assert idle.log() == ["alice: Create configmaps default/hers in root:b", f"mallory: Write {turn} objects in root:a"]
    assert idle.store.count(Internal.INTENT) == FLOOD - turn
    while idle.committer.waiting():
        idle.committer.serve()
    assert len(idle.log()) == 2 + -(-(FLOOD - turn) // turn)
    assert {f"m{n}" for n in range(FLOOD)} < {key.name for key in idle.everything()}


def test_an_answer_that_nobody_fetches_goes_when_nobody_waits(idle: CommitFleet) -> None:
    clock = [1000.0]
    unfetched = Unfetched(idle.store, lambda: clock[0])
    for name, deadline in (("early", 1000.0), ("late", 1100.0)):
        intent = Intent(Key("configmaps", "c", "default", name), "alice", None, 0, deadline=deadline, id=name)
        idle.store.write(intent.ops()[0]).result()
        idle.store.write(*Intent.decode(idle.store.scan(Internal.INTENT).records[0]).answered(DONE)).result()
    unfetched.sweep()
    assert left(idle) == {answer_key("early"), answer_key("late")}
    clock[0] = 1061.0
    unfetched.sweep()
    assert left(idle) == {answer_key("late")}


def left(fleet: CommitFleet) -> set[Key]:
    return {record.key for record in fleet.store.scan(Internal.ANSWER).records}
