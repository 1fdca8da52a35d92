"""What is wrong, kind by kind: found in the store and on the machine, worst first, and bounded."""

from __future__ import annotations

import base64
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.auth import pki
from apiserver.auth.givencertificates import GivenCertificates
from apiserver.auth.keys import Keys
from apiserver.complaints import gather as gathering
from apiserver.complaints import machine
from apiserver.complaints.complaint import LONGEST, MOST, Complaint, ComplaintKind, Complaints
from apiserver.complaints.gather import NOT_FLEET, gather, gather_in
from apiserver.complaints.machine import MachinePlace
from apiserver.model import clock
from apiserver.model.commits import own
from apiserver.model.conditions import NOT_ASKED, condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, SYNC_TARGETS
from apiserver.registry import announced, indexes, looks, tree
from apiserver.registry.looks import Away, WaitingHead
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Put
from apiserver.stores import DECLARED

Object = dict[str, Any]

HEAD, NEWER = "1" * 40, "2" * 40
NOW = 1_800_000_000.0
ROOT = WorkspaceRecord("root", "root", "", commit=own(HEAD), head=own(HEAD))
WEB = WorkspaceRecord("root:shop:web", "web0000000000000", "root:shop", commit=own(HEAD), head=own(HEAD))


class World(NamedTuple):
    store: MemoryStore
    place: MachinePlace

    def workspace(self, record: WorkspaceRecord, *conditions: Object) -> None:
        self.store.write(tree.put_workspace(record), tree.placed(record), *tree.listed(record, None)).result()
        self.put(LOGICAL_CLUSTERS, record.cluster, "cluster", *conditions)

    def put(self, resource: str, cluster: str, name: str, *conditions: Object) -> None:
        obj = {"metadata": {"name": name}, "status": {"conditions": [*conditions]}}
        self.store.write(Put(Key(resource, cluster, "", name), orjson.dumps(obj))).result()

    def fleet(self, **said: Any) -> None:
        self.store.write(tree.put_fleet(FleetRecord(**{"loaded": True, "commit": own(HEAD), **said}))).result()

    def troubles(self, **found: str) -> None:
        self.store.write(tree.put_troubles(found)).result()

    def wrong(self) -> list[Complaint]:
        return list(gather(self.store, self.place).listed)

    def only(self) -> Complaint:
        (found,) = self.wrong()
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(gathering.time, "time", lambda: NOW)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, 1 << 40))
    made = World(MemoryStore(declared=DECLARED), MachinePlace(tmp_path, tmp_path / "keys"))
    made.fleet()
    made.workspace(ROOT)
    return made


def test_nothing_is_wrong(world: World) -> None:
    world.workspace(WEB, condition("CommitApplied", True), condition("SourceFollowed", None))
    world.put(indexes.PLACEMENTS, WEB.cluster, "web", condition("Ready", True), condition("Supported", False))
    world.put(SYNC_TARGETS, WEB.cluster, "eu", condition("Ready", True), condition("LeaseHeld", True))
    assert gather(world.store, world.place) == Complaints((), {}, (), 2, HEAD)


def test_a_first_load_that_is_not_complete(world: World) -> None:
    world.fleet(loaded=False, done=3, total=8)
    found = world.only()
    assert (found.kind, found.where) == ("loading", "the fleet")
    assert "3 of 8 workspaces are loaded" in found.what


@pytest.mark.parametrize(
    ("trouble", "kind", "command"),
    [
        ("Observing", ComplaintKind.OBSERVER, ""),
        ("Held", ComplaintKind.FLEET, "treeplane validate"),
        ("RemoteAway", ComplaintKind.REMOTE, "treeplane reconcile-now"),
        ("StatusBranchDiverged", ComplaintKind.STATUS_BRANCH, "treeplane reconcile-now"),
        ("StatusBranchRefused", ComplaintKind.STATUS_BRANCH, "treeplane reconcile-now"),
        ("OfALaterProgram", ComplaintKind.FLEET, "treeplane validate"),
    ],
)
def test_troubles_of_the_fleet(world: World, trouble: str, kind: ComplaintKind, command: str) -> None:
    world.troubles(**{trouble: "why it is so"})
    assert world.only() == Complaint(kind, "the fleet", "why it is so", command)


def test_a_repository_that_does_not_answer_says_since_when_and_when_it_is_asked_again(world: World) -> None:
    world.troubles(RemoteAway="no route")
    world.store.write(looks.put_away(Away(NOW - 100, NOW + 10))).result()
    assert world.only().what == (
        "no answer since 2027-01-15T07:58:20Z, it is asked again at 2027-01-15T08:00:10Z: no route"
    )
    world.store.write(looks.put_away(Away(NOW - 100, NOW - 1))).result()
    assert "it is being asked again" in world.only().what


def test_a_commit_that_was_seen_and_is_not_served(world: World) -> None:
    world.store.write(looks.put_waiting(WaitingHead(NEWER, NOW - 60))).result()
    world.fleet(arriving=(own(NEWER),))
    found = world.only()
    assert (found.kind, found.command) == (ComplaintKind.LAG, "treeplane reconcile-now")
    assert found.what == (
        "commit 2222222222 was seen at 2027-01-15T07:59:00Z and is not served yet, 1111111111 is; "
        "on its way into the store: 2222222222"
    )
    world.store.write(looks.put_waiting(WaitingHead(NEWER, NOW - 1))).result()
    assert world.wrong() == [], "that takes a moment"
    world.store.write(looks.put_waiting(WaitingHead(HEAD, NOW - 60))).result()
    assert world.wrong() == [], "it is served"


def test_a_commit_that_is_held_as_a_whole_is_told_once(world: World) -> None:
    world.store.write(looks.put_waiting(WaitingHead(NEWER, NOW - 60))).result()
    world.troubles(Held="commit 2222222222 is held: why")
    assert world.only().kind == ComplaintKind.FLEET


def test_who_is_told_of_commits_and_cannot_be(world: World) -> None:
    world.store.write(announced.put_failing("forge", "403"), announced.put_failing("hook", "")).result()
    assert world.only() == Complaint(ComplaintKind.TELLING, "forge", "403")


def test_a_workspace_that_is_held_says_its_first_error(world: World) -> None:
    errors = ["workspaces/root/shop/web/a.yaml:3: no such field", "workspaces/root/shop/web/b.yaml:1: no"]
    world.workspace(WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=errors))
    assert world.only() == Complaint(
        ComplaintKind.HELD,
        "root:shop:web",
        "workspaces/root/shop/web/a.yaml:3: no such field (and 1 more)",
        "treeplane validate -w root:shop:web",
    )


def test_a_source_that_cannot_be_read_or_written_to(world: World) -> None:
    world.workspace(WEB, condition("SourceFollowed", False, "Unreachable", "nobody answers"))
    found = world.only()
    assert (found.kind, found.where) == (ComplaintKind.SOURCE, "root:shop:web")
    assert found.what == "Unreachable: nobody answers"
    assert found.command == "treeplane reconcile-now root:shop:web"


def test_a_secret_that_nobody_here_can_read(world: World) -> None:
    world.workspace(WEB, condition("CommitApplied", True, "SecretsLocked", "all but x.yaml is served"))
    assert world.only() == Complaint(ComplaintKind.SECRET, "root:shop:web", "all but x.yaml is served")


def test_a_placement_says_the_first_that_is_wrong(world: World) -> None:
    world.workspace(WEB)
    told = condition("Scheduled", False, "NoValidTarget", "none is ready"), condition("Synced", False, "ApplyFailed")
    world.put(indexes.PLACEMENTS, WEB.cluster, "web", *told)
    world.put(indexes.PLACEMENTS, WEB.cluster, "xyz", condition("Synced", False, "ApplyFailed", "ConfigMap a/b: no"))
    first, second = world.wrong()
    assert first == Complaint(
        ComplaintKind.PLACEMENT,
        "root:shop:web:web",
        "NoValidTarget: none is ready",
        "kubectl ws root:shop:web && kubectl describe placement web",
    )
    assert second.what == "ApplyFailed: ConfigMap a/b: no"


def unasked(kind: str, ago: float, status: bool | None = False) -> Object:
    return condition(kind, status, "NoValidTarget", f"eu is not ready: {NOT_ASKED}", at=clock.rfc3339(NOW - ago))


def test_what_waits_for_the_first_question_to_a_sync_target_is_a_beginning(world: World) -> None:
    world.workspace(WEB)
    world.put(SYNC_TARGETS, ROOT.cluster, "eu", unasked("Ready", 1, None))
    for name in ("a", "b", "c", "d"):
        world.put(indexes.PLACEMENTS, WEB.cluster, name, unasked("Scheduled", 2))
    world.put(indexes.PLACEMENTS, WEB.cluster, "e", condition("Synced", False, "ApplyFailed", "no"))
    found = {each.kind: each for each in world.wrong()}
    assert [*found] == [ComplaintKind.STARTING, ComplaintKind.PLACEMENT]
    assert found[ComplaintKind.PLACEMENT].where == "root:shop:web:e"
    named = "root:eu, root:shop:web:a, root:shop:web:b and 2 more"
    assert (found[ComplaintKind.STARTING].where, found[ComplaintKind.STARTING].command) == (named, "")
    assert gather(world.store, world.place).more == {}
    assert [each.kind for each in gather_in(world.store, WEB).listed] == [*found]


@pytest.mark.parametrize("at", ["", "yesterday", clock.rfc3339(NOW - 11), clock.rfc3339(NOW + 99)])
def test_one_that_is_not_asked_for_long_is_a_trouble(world: World, at: str) -> None:
    world.workspace(WEB)
    told = unasked("Ready", 0, None) | {"lastTransitionTime": at}
    world.put(SYNC_TARGETS, ROOT.cluster, "eu", told)
    world.put(indexes.PLACEMENTS, WEB.cluster, "a", {**told, "type": "Scheduled", "status": "False"})
    assert [each.kind for each in world.wrong()] == [ComplaintKind.TARGET, ComplaintKind.PLACEMENT]


@pytest.mark.parametrize(
    "told",
    [
        condition("Ready", False, "ErrorHeartbeat", "why"),
        condition("Ready", None, "CredentialsMissing", "why"),
        condition("LeaseHeld", False, "NotHeld", "why"),
        condition("CredentialsValid", False, "CredentialsEnding", "why"),
        condition("InventoryExplained", False, "UnexplainedLeftovers", "why"),
    ],
)
def test_a_sync_target(world: World, told: Object) -> None:
    world.workspace(WEB)
    world.put(SYNC_TARGETS, WEB.cluster, "eu", *([] if told["type"] == "Ready" else [condition("Ready", True)]), told)
    assert world.only() == Complaint(
        ComplaintKind.TARGET,
        "root:shop:web:eu",
        f"{told['reason']}: why",
        "kubectl ws root:shop:web && kubectl describe synctarget eu",
    )


def test_a_disk_that_is_nearly_full(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def usage(total: int, free: int) -> None:
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(total, total - free, free))

    gib = 1 << 30
    usage(100 * gib, 2 * gib)
    found = world.only()
    assert (found.kind, found.where) == (ComplaintKind.DISK, str(world.place.data_dir))
    assert found.what.startswith("2.0 GiB of 100.0 GiB are free")
    usage(8 * gib, 2 * gib)
    assert world.wrong() == [], "a small one has room"
    usage(1000 * gib, 20 * gib)
    assert world.wrong() == [], "of a large one a little is much"


def test_a_store_that_is_nearly_as_large_as_it_may_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.place.store_dir.mkdir()
    (world.place.store_dir / "data.mdb").write_bytes(b"x" * 100)
    assert world.wrong() == []
    monkeypatch.setattr(machine, "_STORE_SHARE", 0.0)
    assert world.only().where == str(world.place.store_dir)


def test_certificates_that_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = pki.ensure_keys(world.place.keys_dir)
    admin = base64.b64encode(keys.admin.certificate.read_bytes()).decode()
    (world.place.data_dir / "admin.kubeconfig").write_text(f"users:\n- user:\n    client-certificate-data: {admin}\n")
    ends = pki.ends(keys.server.certificate.read_bytes())

    def at(moment: float) -> list[tuple[str, str]]:
        monkeypatch.setattr(gathering.time, "time", lambda: moment)
        return [(c.where.rpartition("/")[2], c.what.partition(":")[0][:21]) for c in world.wrong()]

    assert at(ends - 22 * 86400) == [], "it is made anew a month before that"
    some = ["server.crt", "admin.crt", "shard-admin.crt", "syncer.crt", "admin.kubeconfig"]
    assert at(ends - 20 * 86400) == [(name, "the certificate ends ") for name in some]
    assert at(ends + 3600) == [(name, "the certificate ended") for name in some], "the others were made after it"
    authority = pki.ends(keys.ca.read_bytes())
    assert at(authority - 179 * 86400)[0] == ("ca.crt", "the certificate ends ")


DAY = 86400.0


def certificate(began: float, ends: float) -> bytes:
    """From and to so many days after NOW."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    begin, end = (datetime.fromtimestamp(NOW + days * DAY, UTC) for days in (began, ends))
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    ("option", "file", "told"),
    [
        ("serving", [certificate(-400, 20), certificate(-400, 900)], "--tls-cert-file"),
        ("serving", [certificate(-400, 22), certificate(-400, 1)], ""),
        ("serving", [certificate(-2, 4)], ""),
        ("serving", [certificate(-5, 1)], "--tls-cert-file"),
        ("clients", [certificate(-900, 900), certificate(-900, 170)], "--client-ca-file"),
        ("clients", [certificate(-900, 190)], ""),
        ("clients", [certificate(-900, -1)], "--client-ca-file"),
        ("external", [certificate(-900, 900), certificate(-900, 170)], ""),
        ("external", [certificate(-900, 10), certificate(-900, 170)], "--external-ca-file"),
        ("external", [b"nonsense"], ""),
    ],
)
def test_certificates_that_it_was_given(world: World, option: str, file: list[bytes], told: str) -> None:
    path = world.place.data_dir / "given.pem"
    path.write_bytes(b"".join(file))
    place = MachinePlace(world.place.data_dir, world.place.keys_dir, GivenCertificates(**{option: path}))
    found = gather(world.store, place).listed
    assert [(each.kind, each.where, each.command) for each in found] == [("certificate", str(path), "")] * bool(told)
    assert all(told in each.what for each in found)


def test_files_that_are_no_certificates_are_nobodys(world: World) -> None:
    keys = Keys(world.place.keys_dir)
    keys.directory.mkdir()
    keys.ca.write_text("nonsense")
    (world.place.data_dir / "admin.kubeconfig").write_text("client-certificate-data: AAA=A\n")
    assert world.wrong() == []


def test_the_worst_comes_first(world: World) -> None:
    world.workspace(WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=["a:1: b"]))
    world.put(SYNC_TARGETS, ROOT.cluster, "eu", condition("Ready", False))
    world.troubles(RemoteAway="away", Observing="theirs")
    assert [each.kind for each in world.wrong()] == ["observer", "remote", "target", "held"]


def test_of_many_a_few_are_listed_and_all_counted(world: World) -> None:
    for number in range(MOST + 5):
        cluster = f"w{number:015}"
        at = condition("SourceFollowed", False, "Failing", "no")
        world.workspace(WorkspaceRecord(f"root:w{number:03}", cluster, "root", errors=["a:1: b"]), at)
        world.put(indexes.PLACEMENTS, cluster, "p", condition("Ready", False))
        world.put(SYNC_TARGETS, cluster, "t", condition("Ready", False))
    found = gather(world.store, world.place)
    assert found.more == {"held": 5, "source": 5, "placement": 5, "target": 5}
    assert len(found.listed) == 4 * MOST


@pytest.mark.parametrize(
    "status",
    [None, 7, [], {"conditions": 7}, {"conditions": [None, 7, {}, {"type": []}, {"type": "Ready"}]},
     {"conditions": [{"type": "Ready", "status": "False", "reason": {}, "message": ["a"]}]}],
)  # fmt: skip
def test_a_status_that_is_none_is_nobodys_loss(world: World, status: Any) -> None:
    """Whoever may write one hides nothing that is wrong with others."""
    world.workspace(WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=["a:1: b"]))
    for resource in (SYNC_TARGETS, indexes.PLACEMENTS, LOGICAL_CLUSTERS):
        obj = orjson.dumps({"metadata": {"name": "x"}, "status": status})
        world.store.write(Put(Key(resource, WEB.cluster, "", "x"), obj)).result()
    assert "held" in [each.kind for each in world.wrong()]


def test_another_kind_of_the_same_name_is_no_placement(world: World) -> None:
    world.workspace(WEB)
    world.put(f"{indexes.PLACEMENTS}:9f86d081", WEB.cluster, "x", condition("Ready", False))
    world.put(f"{LOGICAL_CLUSTERS}:9f86d081", WEB.cluster, "x", condition("SourceFollowed", False))
    assert world.wrong() == []


def test_what_others_chose_is_cut(world: World) -> None:
    world.workspace(WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=["x\n" * 100_000]))
    assert len(world.only().what) <= LONGEST + 1
    assert "\n" not in world.only().what


def test_of_one_workspace_nothing_else_is_told(world: World) -> None:
    world.troubles(RemoteAway="away")
    other = WorkspaceRecord("root:shop:other", "other00000000000", "root:shop", errors=["b:1: c"])
    world.workspace(other, condition("SourceFollowed", False))
    for cluster in (WEB.cluster, other.cluster):
        world.put(indexes.PLACEMENTS, cluster, "p", condition("Synced", False, "ApplyFailed", cluster))
        world.put(SYNC_TARGETS, cluster, "t", condition("Ready", False, "Silent", cluster))
    record = WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=["a:1: b"])
    world.workspace(record, condition("CommitApplied", True, "SecretsLocked"), condition("SourceFollowed", False))
    found = gather_in(world.store, record)
    assert [each.kind for each in found.listed] == ["target", "held", "placement", "source", "secret"]
    assert other.path not in str(found.document())
    assert other.cluster not in str(found.document())
    assert found.unseen == (NOT_FLEET,)


def test_what_is_told_is_read_as_it_was_told(world: World) -> None:
    world.workspace(WorkspaceRecord(WEB.path, WEB.cluster, WEB.parent, errors=["a:1: b"]))
    found = gather(world.store, world.place)
    assert Complaints.read(orjson.loads(orjson.dumps(found.document()))) == found
