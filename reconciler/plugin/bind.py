"""`treeplane bind`: an APIBinding of the current workspace to another one's APIExport, and until it is bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.plugin.claims import ACCEPTED, BINDINGS, REJECTED, answered, group_resource, named
from reconciler.plugin.client import Object
from reconciler.plugin.errors import NOT_READY, USAGE, PluginError
from reconciler.plugin.session import CLUSTERS, Session
from reconciler.plugin.waiting import in_phase, missing

_EXPORTS = "/apis/apis.kcp.io/v1alpha2/apiexports"


@dataclass(frozen=True, slots=True)
class WantedBinding:
    """`reference`: `<path of a workspace>:<export>`. `accepted`, `rejected`: claims, as `resource.group`; `every`: the
    answer to all that the export claims, Accepted or Rejected."""

    reference: str
    name: str = ""
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    every: str = ""
    seconds: float = 30.0

    @property
    def path(self) -> str:
        return self.reference.rpartition(":")[0]

    @property
    def export(self) -> str:
        return self.reference.rpartition(":")[2]

    def check(self) -> None:
        """Raises PluginError."""
        if not self.path or not self.export or "" in self.path.split(":"):
            raise PluginError(
                f'"{self.reference}" is not <path of a workspace>:<name of an APIExport>, like root:shop:db',
                USAGE,
            )
        if self.every and (self.accepted or self.rejected):
            raise PluginError("either all claims have one answer, or each has its own", USAGE)
        both = set(self.accepted) & set(self.rejected)
        if both:
            raise PluginError(f"a claim cannot be both accepted and rejected: {', '.join(sorted(both))}", USAGE)

    def manifest(self, claims: list[Object]) -> Object:
        reference = {"export": {"path": self.path, "name": self.export}}
        return {
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIBinding",
            "metadata": {"name": self.name or self.export},
            "spec": {"reference": reference, **({"permissionClaims": claims} if claims else {})},
        }


def manifest_of(session: Session, wanted: WantedBinding) -> Object:
    """What `bind` makes. Raises PluginError."""
    wanted.check()
    return wanted.manifest(_claims(session, wanted))


def bind(session: Session, wanted: WantedBinding, say: Callable[[str], None]) -> Object:
    """The APIBinding, once it is bound. Raises PluginError."""
    manifest = manifest_of(session, wanted)
    name = manifest["metadata"]["name"]
    answer = session.client.send("POST", session.within(BINDINGS), manifest)
    if answer.status != 201:
        raise answer.refusal()
    say(f"apibinding {name} created. Waiting to successfully bind ...")
    seen, bound = in_phase("Bound", session, f"{BINDINGS}/{name}", answer.object, wanted.seconds)
    if not bound:
        raise PluginError(
            f"could not bind {name} within {wanted.seconds:g} s; see kubectl get apibinding {name} -o yaml"
            f"{missing(seen)}",
            NOT_READY,
        )
    say(f"{name} created and bound.")
    return seen


def _claims(session: Session, wanted: WantedBinding) -> list[Object]:
    answers = [*((each, ACCEPTED) for each in wanted.accepted), *((each, REJECTED) for each in wanted.rejected)]
    if not (answers or wanted.every):
        return []
    claimed = _claimed(session, wanted)
    if wanted.every:
        return [answered(claim, wanted.every) for claim in claimed]
    return [answered(_the_one(claimed, text, wanted), state) for text, state in answers]


def _claimed(session: Session, wanted: WantedBinding) -> list[Object]:
    """What the export claims: verbs and identities have to be the same in an answer."""
    answer = session.client.get(f"{CLUSTERS}{wanted.path}{_EXPORTS}/{wanted.export}")
    if answer.status != 200:
        raise PluginError(f'failed to get APIExport "{wanted.export}": {answer.refusal()}')
    return (answer.object.get("spec") or {}).get("permissionClaims") or []


def _the_one(claimed: list[Object], text: str, wanted: WantedBinding) -> Object:
    asked = group_resource(text)
    for claim in claimed:
        if asked == {"group": claim.get("group") or "", "resource": claim.get("resource")}:
            return claim
    others = ", ".join(map(named, claimed)) or "nothing"
    raise PluginError(f'APIExport "{wanted.export}" claims no {text}, but {others}')
