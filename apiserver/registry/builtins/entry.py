"""What the program knows of one built-in kind, beside Kubernetes' own facts of it (facts/) and its schema.

Each kind has one entry, in the file of its family; catalogue.py puts them together and is asked by everybody else. A
field's default is what holds of most kinds, so an entry says what is particular. What is done in a room above the
registry is named here by a value of an enum, and looked up there by that value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from apiserver.registry.behaviours.base import Behaviour
from apiserver.registry.builtins.conditiontypes import ConditionType
from apiserver.registry.names import Check, dns_subdomain
from apiserver.registry.printers.base import SIMPLE, Printer

Object = dict[str, Any]


class Review(Enum):
    """A question to the API server: what is answered (endpoints/reviews)."""

    SELF_ACCESS = "SelfSubjectAccessReview"
    ACCESS = "SubjectAccessReview"
    LOCAL_ACCESS = "LocalSubjectAccessReview"
    RULES = "SelfSubjectRulesReview"
    SELF = "SelfSubjectReview"
    TOKEN = "TokenReview"


class RbacPart(Enum):
    """What an object of RBAC does: it says what may be done, or who may."""

    ROLE = "role"
    BINDING = "binding"


class Dependents(Enum):
    """What becomes of those that an object owns where its deletion names no propagation policy."""

    BACKGROUND = "background"
    """They go after it."""
    ORPHANED = "orphaned"
    """They stay."""
    NONE = "none"
    """It has none: a policy that is named does nothing."""


class Runtime(Enum):
    """Whether objects are runtime state, so that git need not know them."""

    NO = "no"
    OWN = "own"
    """Where a workspace's writes are commits: they never pass through git."""
    ALWAYS = "always"


class Sync(Enum):
    """Whether objects go down to sync targets."""

    NEVER = "never"
    BOUND = "bound"
    """Workspaces have the kind from the export `kubernetes`."""
    BUILT_IN = "built in"
    """Every workspace has it, so it is never a reason why a target is not compatible."""


class Health(Enum):
    """By which rule an object is healthy where it runs (reconciler/plan/health)."""

    EXISTS = "exists"
    DEPLOYMENT = "deployment"
    STATEFUL_SET = "stateful set"
    REPLICA_SET = "replica set"
    DAEMON_SET = "daemon set"
    JOB = "job"
    POD = "pod"


class Reading(NamedTuple):
    """How a selectable field is read that is not just what stands at its path: the first of `paths` that says
    something, `absent` where the last is missing."""

    paths: tuple[str, ...]
    absent: str = ""


ToVersion = Callable[[Object, str], Object]


class Unsupported(NamedTuple):
    """A field that may be said and does nothing. `said` is asked with the spec; `instead`: what is so."""

    path: str
    said: Callable[[Object], bool]
    instead: str


@dataclass(frozen=True, slots=True, eq=False)
class BuiltinKind:
    """`kind` as manifests say it; `qualified` as the store and RBAC do (`deployments.apps`, `configmaps`).

    What an object may say
      behaviour       defaults and checks beyond the schema
      names           the rule that its name follows
      generation      metadata.generation is kept
      labels_count    a change of its labels counts for it

    How it is served
      everywhere      in every workspace; other kinds of Kubernetes come by binding, or with `builtins: Kubernetes`
      in_root         in root alone
      export          of our own kinds that are not: the export that ships and brings it, under its own store name
      shares          the store name of the kind whose objects it shows; "": it has its own
      other_versions  of Kubernetes' kinds: versions in which objects are served and not stored
      converts        gives an object in another version (its apiVersion); None where versions differ in name alone
      hashed_as       group and version that Kubernetes' storageVersionHash is made of, where that is not its own
      deprecated      the Warning for whoever uses it
      selectable      fields besides metadata.name and metadata.namespace that field selectors may name
      unselectable    what who names another one is told, with {} for that; "" where that is as of most kinds
      readings        of these, by path, those that are not read at their path
      printer         what `kubectl get` shows, of Kubernetes' kinds; of our own the definition says it
      cells           of our own kinds: columns that no JSON path gives, by name
      filled          clients read more than is stored, such as the server's address (endpoints/views)
      review          the answer, of kinds that are questions

    What a write does
      put_creates     a PUT of an absent object creates it
      put_revised     a PUT needs a resourceVersion
      status_takes    what of the metadata its status subresource takes
      status_created  the status of a new object counts, though there is a status subresource
      plugins         admission plugins that complete a new object, in their order (admission/completion)
      vetted_by       the one that looks at every write, "" for none
      finalizer       by which it stays while it is used, set on a new object
      unenforced      what an object does not bring about yet: the Warning of a write
      grants          what it does in RBAC
      token_bound     a ServiceAccount's token may be bound to it
      dependents      of its deletion
      answers_deleted a DELETE answers the object, where others answer a Status

    What git knows
      runtime         whether objects are runtime state
      from_commits    it comes into effect with a commit alone; one that was only stored would do nothing
      computed_status its status follows from what is declared, of the object and of others
      servers_status  nobody else writes it: nothing would put right what a client wrote there
      administered_status  but who administers everything, as in kcp, until the server looks again
      by_directory    why no manifest declares it, of kinds whose objects are directories or follow from them
      defines_kinds   it decides which kinds its workspace serves
      offered         it provides something to other workspaces
      contains        objects stand in it
      unsupported     its fields that do nothing
      conditions      what the server tells of its objects

    What sync targets do
      sync            whether it goes down
      health          when it is healthy there
      stateful        it holds state: a namespace with one does not move by itself
      autoscaled      a HorizontalPodAutoscaler may set its replicas, which git does not then
      made_in_all     the name of the one that a cluster makes for itself in every namespace
      made_alone      clusters make them of what else is there, so they keep no namespace
    """

    kind: str
    qualified: str
    behaviour: Behaviour = Behaviour()  # noqa: RUF009  frozen
    names: Check = dns_subdomain
    generation: bool = False
    labels_count: bool = False

    everywhere: bool = False
    in_root: bool = False
    export: str = ""
    shares: str = ""
    other_versions: tuple[str, ...] = ()
    converts: ToVersion | None = None
    hashed_as: str = ""
    deprecated: str = ""
    selectable: tuple[str, ...] = ()
    unselectable: str = ""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    printer: Printer = SIMPLE
    cells: Mapping[str, Callable[[Object], Any]] = field(default_factory=dict)
    filled: bool = False
    review: Review | None = None

    put_creates: bool = False
    put_revised: bool = False
    status_takes: tuple[str, ...] = ("labels", "annotations")
    status_created: bool = False
    plugins: tuple[str, ...] = ()
    vetted_by: str = ""
    finalizer: str = ""
    unenforced: str = ""
    grants: RbacPart | None = None
    token_bound: bool = False
    dependents: Dependents = Dependents.BACKGROUND
    answers_deleted: bool = False

    runtime: Runtime = Runtime.NO
    from_commits: bool = False
    computed_status: bool = False
    servers_status: bool = False
    administered_status: bool = False
    by_directory: str = ""
    defines_kinds: bool = False
    offered: bool = False
    contains: bool = False
    unsupported: tuple[Unsupported, ...] = ()
    conditions: tuple[ConditionType, ...] = ()

    sync: Sync = Sync.NEVER
    health: Health = Health.EXISTS
    stateful: bool = False
    autoscaled: bool = False
    made_in_all: str = ""
    made_alone: bool = False

    @property
    def resource(self) -> str:
        return self.qualified.partition(".")[0]

    @property
    def group(self) -> str:
        return self.qualified.partition(".")[2]
