"""Nothing says that the newest commit is served when it is not: every state of a fleet, and every place that speaks of
it.

What a place says while nothing is wrong stands in SILENT. A row of the table says which places say something else in a
state, and what; all others are to be silent, and all are silent again once it is over.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.apifleet import ApiFleet
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, configmap
from support.ownedfleet import OWNERS_YAML
from support.room import plenty
from support.sourcedfleet import SourcedFleet, TenantRepos
from support.speaking import Places, Said, Speaking

from apiserver.complaints import fleet as complaints_of_fleet
from apiserver.complaints.gather import gather_in
from apiserver.metrics.fleet import COMMITS_JUDGED, WORKSPACES_JUDGED
from apiserver.model.commits import shortened
from apiserver.registry import lags, tree
from reconciler.commands import looking, reconcilenow, sourceasking, sourcing, statuswords
from reconciler.controllers import sourcecondition
from reconciler.loading import sourcelist
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.pauses import Pauses
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.sourcing.followed import Found

Eventually = Callable[..., object]

LONG = 60.0
"""Seconds for all places to say the same: one look at them takes up to five."""
HOLD = TREEPLANE_YAML + "spec: {safety: {rewrites: Hold}}\n"
SIGNED = TREEPLANE_YAML + "spec: {safety: {rewrites: Hold}, verification: {mode: Every}}\n"
BAD = {f"{A}/app.yaml": "x: ["}
R = "workspaces/root"

SILENT = {
    "livez": "livez check passed",
    "readyz": "[+]fleet ok",
    "followed": "True Followed: ",
    "applied": "True Applied: ",
    "own": "True Applied: ",
    "status": "nothing is wrong; 4 workspaces are served at {head}",
    "asked": "the branch is at {head}, and that is served",
    "pushed": "commit {head} is served",
    "commit": "{last}",
    "held": "",
    "lag": "",
    "metrics": "",
}
"""`head`: the branch's; `last`: the commit that last changed root:a. `up` has no line about the head."""


class Stage(NamedTuple):
    fleet: ApiFleet
    plane: Speaking
    patch: pytest.MonkeyPatch
    eventually: Eventually

    def push(self, files: dict[str, Any]) -> str:
        """And waits for the answer."""
        made = self.fleet.repo.commit(files)
        self.answered()
        return made

    def answered(self) -> None:
        self.eventually(self.plane.pushed, what="the push is answered")

    def looks(self, told: str) -> None:
        self.plane.look()
        self.eventually(lambda: told in self.plane.lines(), what=told)


State = Callable[[Stage], Iterator[None]]


def good(stage: Stage) -> Iterator[None]:
    stage.push({f"{A}/app.yaml": configmap(a="good")})
    yield


def held_workspace(stage: Stage) -> Iterator[None]:
    stage.push(BAD)
    yield
    stage.push({f"{A}/app.yaml": configmap(a="mended")})


def lag(stage: Stage) -> Iterator[None]:
    """A good commit comes upon one that holds."""
    stage.push(BAD)
    stage.push({f"{B}/app.yaml": configmap(a="another")})
    yield
    stage.push({f"{A}/app.yaml": configmap(a="mended")})


def trespass(stage: Stage) -> Iterator[None]:
    stage.push({"treeplane.yaml": OWNERS_YAML})
    stage.push({f"{A}/app.yaml": configmap(a="nobody's")})
    yield


def unsigned(stage: Stage) -> Iterator[None]:
    stage.push({"treeplane.yaml": SIGNED})
    stage.push({f"{B}/app.yaml": configmap(a="unsigned")})
    yield


def held_fleet(stage: Stage) -> Iterator[None]:
    stage.push({"treeplane.yaml": "kind: ["})
    yield
    stage.push({"treeplane.yaml": HOLD})


def rewound(stage: Stage) -> Iterator[None]:
    first = stage.fleet.repo.head
    last = stage.push({f"{B}/app.yaml": configmap(a="new")})
    stage.fleet.repo.reset(first)
    stage.eventually(lambda: "went back to" in "".join(stage.plane.lines()))
    yield
    stage.fleet.repo.reset(last)


def rewritten(stage: Stage) -> Iterator[None]:
    first = stage.fleet.repo.head
    last = stage.push({f"{B}/app.yaml": configmap(a="new")})
    stage.fleet.repo.reset(first)
    stage.push({f"{B}/app.yaml": configmap(a="instead")})
    yield
    stage.fleet.repo.reset(last)


def _unreadable(stage: Stage) -> str:
    """A head of which something is missing; the one before."""
    served, load = stage.fleet.repo.head, Loader.load

    def fails(loader: Loader, head: Any, *more: Any) -> Loaded:
        if head.id != served:
            raise RepositoryUnreadable("object 12 is missing")
        return load(loader, head, *more)

    stage.patch.setattr(Loader, "load", fails)
    made = stage.fleet.repo.commit({f"{B}/app.yaml": configmap(a="unread")})
    stage.looks(f"commit {made:.10} cannot be loaded: object 12 is missing")
    return served


def unreadable(stage: Stage) -> Iterator[None]:
    load = Loader.load
    _unreadable(stage)
    yield
    stage.patch.setattr(Loader, "load", load)
    stage.plane.look()
    stage.answered()


def unreadable_and_back(stage: Stage) -> Iterator[None]:
    served = _unreadable(stage)
    yield
    stage.fleet.repo.reset(served)
    stage.plane.look()


def waiting(stage: Stage) -> Iterator[None]:
    """A large commit is being loaded, and one that removes a workspace has to wait for it."""
    stage.patch.setattr(complaints_of_fleet, "_PATIENCE", 0.0)
    stage.patch.setattr(looking, "_LONG", 0.0)
    loader: Any = stage.plane.made._loader  # type: ignore[union-attr]
    stage.eventually(lambda: loader.meanwhile is not None)
    begins, goes_on, meanwhile = threading.Event(), threading.Event(), loader.meanwhile

    def slow() -> None:
        if not begins.is_set():
            stage.fleet.repo.commit({f"{R}/gone/workspace.yaml": None})
            stage.plane.look()
            meanwhile()
            begins.set()
        goes_on.wait(3 * LONG)

    stage.push({f"{R}/gone/workspace.yaml": ""})
    loader.pauses, loader.meanwhile = Pauses(lambda: 0.0, 0.0), slow
    try:
        stage.fleet.repo.commit({f"{R}/app.yaml": configmap(a="large"), f"{B}/app.yaml": configmap(a="large")})
        assert begins.wait(LONG)
        yield
    finally:
        goes_on.set()


def away(stage: Stage) -> Iterator[None]:
    stage.plane.mirror.cut = True
    stage.looks("the repository does not answer")
    yield
    stage.plane.mirror.cut = False
    stage.plane.look()


def pinned(stage: Stage) -> Iterator[None]:
    to = stage.fleet.repo.head
    said = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {{serve: {{commit: {to}}}}}\n"
    stage.push({f"{A}/workspace.yaml": said})
    stage.push({f"{A}/app.yaml": configmap(a="not now")})
    yield


class Row(NamedTuple):
    """`says`: what the places say that are not silent; `up`: the last line of it, "" for none about this."""

    state: State
    says: dict[str, str]
    up: str = ""


HELD = {"status": "held  root:a: ", "asked": "the branch is at {head}: 1 workspace is held", "held": "app.yaml"}
HELD |= {"applied": "False ContentInvalid: held back", "own": "False ContentInvalid: held back", "lag": "1"}
HELD["metrics"] = "treeplane_workspaces_held treeplane_workspaces_held_lag_commits"
HELD["pushed"] = "commit {head} is served in part: 1 held\n"
WHOLE = {
    "readyz": "[-]fleet Held: commit {head} is held: ",
    "followed": "False Held: commit {head} is held: ",
    "status": "fleet  the fleet: commit {head} is held: ",
    "asked": "the branch is at {head}, and {served} is served: commit {head} is held: ",
    "pushed": "commit {head} is not served:\n",
    "metrics": "treeplane_fleet_trouble=Held",
}
UNREADABLE = {
    "readyz": "[-]fleet Unreadable: commit {head} cannot be loaded: ",
    "followed": "False Unreadable: commit {head} cannot be loaded: ",
    "status": "lag  the fleet: commit {head} cannot be loaded: ",
    "asked": "the branch is at {head}, and {served} is served: commit {head} cannot be loaded: ",
    "pushed": "",
    "metrics": "treeplane_fleet_trouble=Unreadable",
}
TABLE = {
    "good": Row(good, {}),
    "held workspace": Row(held_workspace, HELD, "root:a is held back: "),
    "lag": Row(
        lag,
        {**HELD, "lag": "2", "pushed": "is served in part: 1 configured\n…1 workspace stays held as before"},
        "root:a is held back: ",
    ),
    "trespass": Row(trespass, HELD, "root:a is held back: "),
    "unsigned": Row(unsigned, WHOLE, "commit {head} is held: "),
    "held fleet": Row(held_fleet, WHOLE, "commit {head} is held: "),
    "rewound": Row(rewound, WHOLE, "commit {head} is held: "),
    "rewritten": Row(rewritten, WHOLE, "commit {head} is held: "),
    "unreadable": Row(unreadable, UNREADABLE, "commit {head} cannot be loaded: "),
    "unreadable, and back": Row(unreadable_and_back, UNREADABLE, "commit {head} cannot be loaded: "),
    "waiting": Row(
        waiting,
        {
            "status": "lag  the fleet: commit {before} was seen at …and is not served yet, {served} is",
            "asked": "that is not done yet: {before} is being loaded",
            "pushed": "commit {head} waits for commit {before}, which is being loaded",
            "metrics": "treeplane_commit_waiting_since_timestamp_seconds",
        },
    ),
    "away": Row(
        away,
        {
            "readyz": "[-]fleet RemoteAway: the repository does not answer",
            "followed": "False RemoteAway: the repository does not answer",
            "status": "remote  the fleet: no answer since ",
            "asked": "and {served} is served: the repository does not answer",
            "metrics": "treeplane_fleet_trouble=RemoteAway treeplane_repository_away_since_timestamp_seconds",
        },
        "the repository does not answer",
    ),
    "pinned": Row(
        pinned,
        {
            "applied": "True Pinned: pinned to {first} by ",
            "own": "True Pinned: pinned to {first} by ",
            "pushed": "…workspace root:a stays pinned to {first} by ",
            "commit": "{first}",
        },
    ),
}


def differs(said: Said, says: dict[str, str], **facts: str) -> dict[str, tuple[str, str]]:
    """By place what is said and what was to be; … in it stands for anything."""
    found = dict[str, tuple[str, str]]()
    for place, text in {**SILENT, **says}.items():
        told, wanted = getattr(said, place), text.format(**facts)
        parts = [part for part in wanted.split("…") if part]
        places = [told.find(part) for part in parts]
        fits = -1 not in places and places == sorted(places)
        if place == "pushed" and place not in says:
            fits = fits and told.splitlines()[0].partition(":")[0] == wanted
        if not fits or (not parts and told):
            found[place] = (told, wanted)
    return found


@pytest.fixture(scope="module", autouse=True)
def room() -> Iterator[None]:
    with plenty():
        yield


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": HOLD})
    yield made
    made.close()


@pytest.mark.parametrize("state", TABLE)
def test_every_place_tells_the_truth_in_every_state(
    fleet: ApiFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually, state: str
) -> None:
    row, plane = TABLE[state], Speaking(fleet, monkeypatch)
    stage = Stage(fleet, plane, monkeypatch, eventually)
    try:
        stage.answered()
        with contextmanager(row.state)(stage):
            facts = _facts(fleet)

            def is_told() -> bool:
                found = differs(plane.said(0.5 if row.state is waiting else 5.0), row.says, **facts)
                assert found == {}
                return True

            eventually(is_told, LONG)
            last = plane.lines()[-1]
            assert last.startswith(row.up.format(**facts)) if row.up else last.startswith("loaded ")
        if _is_over(row):
            eventually(lambda: not differs(plane.said(), {}, **_facts(fleet)), LONG, "it is over")
    finally:
        plane.end()


def _is_over(row: Row) -> bool:
    return row.state not in (trespass, unsigned, pinned)


def _facts(fleet: ApiFleet) -> dict[str, str]:
    """Commits, shortened: the branch's head and the one before, the fleet's first, what is served, and what of root:a
    is."""
    repo, head = fleet.repo, fleet.repo.head
    before = next(iter(repo.repo.commit(head).parents), "")
    commits = {"head": head, "before": before, "first": repo.commits[0], "served": fleet.fleet().commit.id}
    commits["last"] = fleet.record("root:a").commit.id
    return {name: commit[:10] for name, commit in commits.items()}


def test_an_observer_says_what_the_holder_recorded_and_no_more(
    fleet: ApiFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    holder = Speaking(fleet, monkeypatch)
    eventually(lambda: fleet.mirror.refresh().status)
    holder.end()
    other = ApiFleet(tmp_path / "other", fleet.repo)
    plane = Speaking(other, monkeypatch, observes=True)
    observing = {
        "readyz": "[-]fleet Observing: another server, ",
        "followed": "False Observing: another server, ",
        "status": "observer  the fleet: another server, ",
        "pushed": "",
        "metrics": "treeplane_fleet_trouble=Observing",
    }
    try:
        eventually(lambda: any(line.startswith("loaded ") for line in plane.lines()))
        eventually(lambda: not differs(plane.said(), observing, **_facts(other)), LONG)
        fleet.repo.commit({f"{B}/app.yaml": configmap(a="meanwhile")})
        observing["asked"] = "and {served} is served: …which holds the fleet, has not recorded {head} as served"
        eventually(lambda: not differs(plane.said(), observing, **_facts(other)), LONG)
        assert "nothing is wrong" not in plane.said().status
    finally:
        plane.end()
        other.close()


def test_an_observer_counts_the_commits_that_it_shows(
    fleet: ApiFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    found: Counter[str] = Counter()
    for metric, of in ((COMMITS_JUDGED, "commits"), (WORKSPACES_JUDGED, "workspaces")):
        monkeypatch.setattr(metric, "add", lambda result, by=1, of=of: found.update({f"{of} {result}": int(by)}))
    holder = Speaking(fleet, monkeypatch)
    eventually(lambda: fleet.mirror.refresh().status)
    holder.end()
    other = ApiFleet(tmp_path / "other", fleet.repo)
    plane = Speaking(other, monkeypatch, observes=True)
    try:
        eventually(lambda: any(line.startswith("loaded ") for line in plane.lines()))
        assert found["commits shown"] == 0, "what a recovery brings back is no commit that came"
        fleet.commit({f"{B}/app.yaml": configmap(a="meanwhile")})
        fleet.publish()
        eventually(lambda: found["workspaces shown"])
        assert other.fleet().commit.id == fleet.repo.head
        assert (found["commits shown"], found["workspaces shown"]) == (1, 1)
    finally:
        plane.end()
        other.close()


def test_a_server_that_starts_upon_a_head_that_cannot_be_read_serves_what_it_served(
    fleet: ApiFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    load = Loader.load

    def fails(*_: Any) -> Loaded:
        raise RepositoryUnreadable("object 12 is missing")

    monkeypatch.setattr(Loader, "load", fails)
    fleet.repo.commit({f"{B}/app.yaml": configmap(a="unread")})
    plane = Speaking(fleet, monkeypatch)
    try:
        facts = _facts(fleet)
        eventually(lambda: f"loaded 4 workspaces at {facts['served']}" in plane.lines())
        eventually(lambda: not differs(plane.said(), UNREADABLE, **facts), LONG)
        monkeypatch.setattr(Loader, "load", load)
        plane.look()
        eventually(plane.pushed)
        eventually(lambda: not differs(plane.said(), {}, **_facts(fleet)), LONG)
    finally:
        plane.end()


def test_while_a_fleet_is_recovered_nothing_is_good(fleet: ApiFleet) -> None:
    fleet.forget((), loaded=False)
    said = Places(fleet).said(0.0)
    assert "[-]informer-sync failed: not loaded" in said.readyz
    assert "readyz check failed" in said.readyz
    assert said.status.startswith("loading  the fleet: the first load is not complete")
    assert "that is not done yet" in said.asked
    assert "livez check passed" in said.livez, "a restart would begin anew"


def test_a_source_that_is_held_or_away_is_told_of_its_workspace_alone(tmp_path: Path) -> None:
    """Of the fleet's own branch all is served."""
    fleet = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    fleet.begin({"treeplane.yaml": HOLD})
    served = fleet.tenants.push({"deploy/app.yaml": configmap(a="theirs")})
    fleet.source()
    assert _of_source(fleet, Found(served, began=1.0)) == {
        "applied": "True",
        "status": f"nothing is wrong; served at {shortened(str(fleet.record('root:a').commit), 10)}",
        "asked": f"looked at the source of root:a, the branch is at {served:.10}, and that is served",
    }

    head = fleet.push({"deploy/app.yaml": "x: ["})
    assert _of_source(fleet, Found(head, began=1.0)) == {
        "applied": "False",
        "status": "held  root:a: deploy/app.yaml",
        "asked": f"looked at the source of root:a, the branch is at {head:.10}, and {served:.10} is served: deploy/app",
    }
    assert lags.lag(fleet.store, fleet.record("root:a")) is None, "the branch's commits say nothing of it"

    fleet.push({"deploy/app.yaml": configmap(a="mended")})
    found = Found(head, "Unreachable", "it does not answer", "mend it", began=1.0)
    [source] = sourcelist.listed(fleet.store).values()
    sourcecondition.tell(fleet.store, "root:a", sourcing._said(source, found))
    said = _of_source(fleet, found)
    assert said["applied"] == "True", "what was judged of it is served"
    assert said["status"].startswith("source  root:a: Unreachable: ")
    assert "is served: Unreachable: it does not answer; mend it" in said["asked"]
    assert tree.troubles(fleet.store) == {}
    fleet.close()


def _of_source(fleet: SourcedFleet, found: Found) -> dict[str, str]:
    """As far as it is the same everywhere: of the first line, up to the error's place."""
    record = fleet.record("root:a")
    [source] = sourcelist.listed(fleet.store).values()
    with fleet.store.view() as view:
        status = statuswords.told(gather_in(view, record), "table").splitlines()[0]
    looked = sourceasking._answer(record, source, found, fleet.judged)
    assert looked is not None
    asked = reconcilenow.LookFound("root:a", True, looked.head, looked.served, looked.wrong, len(record.errors))
    assert asked.good == (not record.errors and not found.reason)
    return {
        "applied": fleet.condition(fleet.workspace("root:a"), "CommitApplied")["status"],
        "status": status.partition(":2:1")[0],
        "asked": asked.told("table").strip().partition(".yaml:2:1")[0],
    }
