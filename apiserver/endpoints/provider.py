"""The provider's view: what an APIExport's provider sees of all its consumers, and may do to it.

    /services/apiexport/<workspace>/<export>/clusters/*/…        all of them: reading
    /services/apiexport/<workspace>/<export>/clusters/<name>/…   one

In it are the kinds that the export offers, those that it claims, and APIBindings. Whoever comes needs the verb on
`apiexports/content` in the provider's workspace; of a consumer they see what its bindings brought and what these grant
(registry/sharing), and nothing of anybody else. Called by realms, which finds the export, and by kube.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from apiserver.auth.maximal import Provided
from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.endpoints.judging import AccessJudge, RealmKinds
from apiserver.endpoints.providerkinds import SUBRESOURCES, ProviderKinds
from apiserver.endpoints.providersight import ProviderSight, SeenKind
from apiserver.model.errors import no_such_resource
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import sharing
from apiserver.registry.kinds import KindTable
from apiserver.registry.permissionclaims import ANY_VERB, Claimed, asked_of, named
from apiserver.registry.served import READ, ServedKind
from apiserver.registry.sharing import Consumer, KnownConsumers, SharedExport
from apiserver.storage.protocol import Store

NO_BINDING = "could not find suitable APIBinding in target logical cluster"
_DENIED = "access denied"
_NO_REASON = "failed to find suitable reason to allow access in APIBinding"
_READ_ONLY = "write access to APIBinding is not allowed from virtual workspace"


class ProviderPlace(NamedTuple):
    """Whose view it is, and of what: of one consumer's logical cluster, or of all (None)."""

    export: SharedExport
    cluster: str | None


class ProvidersKnown:
    """What is remembered between requests of providers' views of a store."""

    def __init__(self, store: Store) -> None:
        self.kinds = ProviderKinds(store)
        self.consumers = KnownConsumers(store)


class ProviderView:
    """Of one request."""

    def __init__(self, store: Store, catalog: RealmKinds, known: ProvidersKnown, place: ProviderPlace) -> None:
        self._store, self._catalog, self._known = store, catalog, known
        export, cluster = place
        self.export, self.cluster = export, cluster
        self._since = store.revision()

    @property
    def home(self) -> str:
        """The logical cluster where rights are asked about."""
        return self.export.cluster

    # -- what there is

    def kinds(self) -> KindTable:
        """The same for every consumer, as the export has it now."""
        return self._kinds

    @cached_property
    def _kinds(self) -> KindTable:
        return self._known.kinds.of(self.export)

    def kind(self, group: str, version: str, resource: str) -> ServedKind | None:
        """As the request's workspace serves it, so that one which keeps an older schema is read by that. Raises
        StatusError 404 where that does not serve it."""
        found = self._kinds.by_resource(group, version, resource)
        if found is None or self.cluster is None:
            return found
        theirs = self._catalog.kinds(self.cluster).by_resource(group, version, resource)
        if theirs is None or theirs.storage != found.storage:
            raise no_such_resource()
        return replace(theirs, verbs=found.verbs, subresources=theirs.subresources & SUBRESOURCES)

    # -- who may

    def authorize(self, judge: AccessJudge, user: User, asked: Attributes) -> AccessDecision:
        """The provider's rights first, which say nothing of consumers."""
        content = Attributes(asked.verb, "apis.kcp.io", "v1alpha2", "apiexports", "content", name=self.export.name)
        decision = judge.authorize(self.home, user, content)
        if not decision.allowed or asked.path:
            return decision
        if not self._is_left(judge, user, asked):
            return AccessDecision(False, _DENIED)
        if self.cluster is None:
            return decision if self._may_ask(asked) else AccessDecision(False, _NO_REASON)
        consumer = self.consumer
        if consumer is None:
            return AccessDecision(False, NO_BINDING)
        why = self._refused(consumer, asked)
        return AccessDecision(False, why) if why else decision

    def _is_left(self, judge: AccessJudge, user: User, asked: Attributes) -> bool:
        """What is claimed of another provider has that one's policy, for whoever comes here as for any consumer."""
        sources = self._sources(asked)
        if sources is None:
            return True
        of_all = (judge.leaves(Provided(each.cluster, each.name), self.home, user, asked) for each in sources)
        return bool(sources) and all(of_all)

    def _sources(self, asked: Attributes) -> list[SharedExport] | None:
        """The exports that bring what is claimed of another provider; None of all else."""
        claim = self._claim(asked.group, asked.resource)
        identity = Claimed.of(claim).identity if claim is not None else ""
        return sharing.exports_by_identity(self._store, identity) if identity else None

    def deciding(self, asked: Attributes) -> Iterable[str]:
        return (self.home, *(each.cluster for each in self._sources(asked) or ()))

    @cached_property
    def consumer(self) -> Consumer | None:
        """What the one workspace takes and grants; None where it takes nothing."""
        assert self.cluster is not None
        return sharing.consumer(self._store, self.export, self.cluster)

    def _may_ask(self, asked: Attributes) -> bool:
        """Of all consumers: a claim without the verb is none for it. What there is not is not found later."""
        claim = self._claim(asked.group, asked.resource)
        is_binding = (asked.resource, asked.group) == ("apibindings", "apis.kcp.io") and asked.verb in READ
        return claim is None or is_binding or bool({asked.verb, ANY_VERB} & set(claim["verbs"]))

    def _claim(self, group: str, resource: str) -> sharing.Object | None:
        """The claim by which a resource is seen; None for the export's own, and for what is not claimed."""
        if any(k.storage in self.export.storages() for k in self._kinds.all() if k.group_resource == (group, resource)):
            return None
        wanted = named(group, resource)
        claims = (c for c in asked_of(self.export.obj) if named(c.get("group") or "", c["resource"]) == wanted)
        return next(claims, None)

    def _refused(self, consumer: Consumer, asked: Attributes) -> str:
        """Why something may not be done in one workspace; "" if it may. What there is not is not found later."""
        kinds = [kind for kind in self._kinds.all() if kind.group_resource == (asked.group, asked.resource)]
        if not kinds or kinds[0].storage in consumer.bound:
            return ""
        claim = self._claim(asked.group, asked.resource)
        grant = consumer.grants.get(Claimed.of(claim)) if claim is not None else None
        if grant is not None and grant.allows(asked.verb):
            return ""
        if kinds[0].storage != BINDINGS:
            return _NO_REASON
        return "" if asked.verb in READ else _READ_ONLY

    # -- what is seen

    def sight(self, kind: ServedKind, verb: str) -> ProviderSight:
        """What a request with that verb sees of a kind."""
        since = self._since
        if self.cluster is None:
            found = self._known.consumers.of(self.export)
        else:
            found = {self.cluster: self.consumer} if self.consumer is not None else {}
        claim = self._claim(kind.group, kind.resource)
        claimed = Claimed.of(claim) if claim is not None else None
        seen = SeenKind(kind.group_resource, kind.storage, claimed, verb, self.cluster)
        return ProviderSight(self._store, self.export, found, seen, since)
