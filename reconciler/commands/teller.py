"""What the reconciler's process says of its work, as reports for `up` (see report). A trouble is told once, not at each
try."""

from __future__ import annotations

from apiserver.model.brief import brief
from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.commands.report import Report
from reconciler.controllers import fleetcondition
from reconciler.controllers.fleetcondition import Trouble
from reconciler.loading.loader import Loaded
from reconciler.plan.happened import HELD, MENDED
from reconciler.plan.notices import Notice

_WIDTH = 300
"""Characters of a line."""


class Teller:
    """Methods may be called from every thread."""

    def __init__(self, report: Report) -> None:
        self.progress = report.progress
        self._report = report
        self._told: dict[Trouble | None, str] = {}
        self._store: Store | None = None

    def attach(self, store: Store) -> None:
        """From now on troubles stand in the store, too: those that were met before, and those to come."""
        self._store = store
        for kind, text in self._told.items():
            self._keep(kind, text)

    def loaded(self, store: Store, commit: CommitRef, seconds: float) -> None:
        """The first load is complete."""
        fleetcondition.show(store)
        held, count = tree.held(store), tree.count(store)
        self._report.say("loaded", commit=str(commit), workspaces=count, seconds=round(seconds, 2), held=held)

    def lends(self) -> None:
        """Another process is to do what is beside loading."""
        self._report.say("lends")

    def held(self, loaded: Loaded) -> None:
        """Who is held back by what was loaded, and who no more."""
        self.held_as_a_whole(loaded)
        for step in loaded.steps:
            for path in step.mended:
                self._report.say("mended", workspace=path)
            for path, problems in step.held.items():
                self._report.say("held", workspace=path, problems=[str(p) for p in problems])

    def held_as_a_whole(self, loaded: Loaded) -> None:
        """Whether a commit is."""
        if loaded.problems:
            self.trouble(f"commit {loaded.head:.10} is held: {'; '.join(map(str, loaded.problems))}", Trouble.HELD)
        else:
            self.over(Trouble.HELD)

    def happened(self, path: str, notice: Notice) -> None:
        """Something of which an Event tells. Who is held, and who no more, is told where it is found out."""
        if notice.reason not in (HELD, MENDED):
            about = notice.about
            name = f"{about.namespace}/{about.name}" if about.namespace else about.name
            text = brief(f"{path}: {about.kind} {name}: {notice.reason}: {notice.message}", _WIDTH)
            self._report.say("happened", sort=notice.reason, text=text)

    def note(self, text: str) -> None:
        """Something that the user should know, and that is no trouble."""
        self._report.say("note", text=text)

    def trouble(self, text: str, kind: Trouble | None = None) -> None:
        """`kind`: of one that lasts until it is `over`."""
        if text != self._told.get(kind):
            self._told[kind] = text
            self._report.say("trouble", text=text)
            self._keep(kind, text)

    def status_branch(self, text: str) -> None:
        """Why the source does not take what is recorded; "" when it does."""
        if text:
            self.trouble(text, Trouble.STATUS_BRANCH_REFUSED)
        else:
            self.over(Trouble.STATUS_BRANCH_REFUSED)

    def over(self, *kinds: Trouble) -> None:
        """These troubles are: they would be told again."""
        for kind in kinds:
            if self._told.get(kind) != "":
                self._told[kind] = ""
                self._keep(kind, "")

    def _keep(self, kind: Trouble | None, text: str) -> None:
        if self._store is not None and kind is not None:
            fleetcondition.tell(self._store, kind, text)

    def refused(self, text: str) -> None:
        """The server does not start."""
        self._report.say("refused", text=text)
