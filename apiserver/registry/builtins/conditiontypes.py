"""The conditions that the server tells of objects of built-in kinds: what each is about, and with which reasons.

A kind's entry names those of its objects. docs/conditions.md is made of that, and a test holds it to the calls that
make conditions. What clients tell, and what stand-ins of kubelets say of workloads, is Kubernetes' own and not here.
"""

from __future__ import annotations

from typing import NamedTuple


class ConditionType(NamedTuple):
    """`says`: what is so while it is True. `amiss`: reasons of which something is to be known, each with its paragraph
    in docs/troubleshooting.md. `well`: the others; where it has none of its own that is `type` again. `only`: it is
    there only with a reason of `amiss`."""

    type: str
    says: str
    amiss: tuple[str, ...] = ()
    well: tuple[str, ...] = ()
    only: bool = False

    @property
    def usual(self) -> tuple[str, ...]:
        """The reasons while nothing is amiss."""
        return () if self.only else self.well or (self.type,)


_OF_REPOSITORIES = (
    *("AddressRefused", "Broken", "CertificateRefused", "Failing", "NotARepository", "NotFound"),
    *("TooLarge", "TooSlow", "Unauthorized", "Unreachable", "Unusable"),
)
_OF_CLUSTERS = (
    *("Connecting", "ErrorHeartbeat", "AddressRefused", "CertificateRefused", "Unauthorized", "Forbidden"),
    *("CredentialsMissing", "CredentialsEnded"),
)
_SUPPORTED = ConditionType("Supported", "All that is said of it does something.", ("NotSupported",), only=True)
_OF_KUBERNETES = ConditionType(
    "ServedAsKubernetes",
    "A schema is one of Kubernetes' own kinds, which are served as Kubernetes has them.",
    ("SchemaIgnored",),
    only=True,
)
_EXPORT_VALID = "APIExportValid"
_UNBOUND = ("NamingConflicts", "APIExportNotFound", "MissingIdentityHash", "InternalError")

_WORKSPACES = (
    ConditionType(
        "CommitApplied",
        "All that was judged of it is served; else what was served stays.",
        ("ContentInvalid", "Pinned", "SecretsLocked", "Removed"),
        ("Applied",),
    ),
    ConditionType(
        "WorkspaceScheduled",
        "Its type is there, and a Shard takes it.",
        ("Unschedulable", "WorkspaceTypesInvalid"),
        ("Scheduled",),
    ),
    ConditionType(
        "WorkspaceInitialized",
        "It is loaded, and every program is done that its type has act first.",
        ("InitializerExists", "ContentInvalid"),
        ("Loaded", "Initialized"),
    ),
    ConditionType(
        "WorkspaceContentDeleted",
        "Of one that goes: nothing is left in it.",
        ("TerminatorExists", "SomeFinalizersRemain"),
        ("ContentDeleted",),
    ),
    ConditionType(
        "SourceFollowed",
        "Of one with `spec.source`: its repository is followed.",
        ("Fetching", "SecretRefused", "BranchNotFound", *_OF_REPOSITORIES),
        ("Followed",),
    ),
    ConditionType(
        "SourceStatusWritten",
        "Of one with `spec.source.status`: its status is written to that repository.",
        ("Writing", "NotFollowed", "Refused", *_OF_REPOSITORIES),
        ("Written",),
    ),
)
WORKSPACE = (
    *_WORKSPACES,
    ConditionType(
        "WorkspaceMountReady",
        "Of a mount: the object that it names says where it is served.",
        ("MountObjectNotFound", "MountObjectNotReady"),
    ),
)
LOGICAL_CLUSTER = (
    *_WORKSPACES,
    ConditionType(
        "FleetFollowed",
        "Of `root`: the branch is followed, and what happens is recorded on the status branch.",
        ("Observing", "Held", "Unreadable", "RemoteAway", "StatusBranchDiverged", "StatusBranchRefused"),
        ("Followed",),
    ),
)
WORKSPACE_TYPE = (
    ConditionType("Ready", "Workspaces may be of the type."),
    ConditionType("VirtualWorkspaceURLsReady", "Its programs can see the workspaces that wait for them."),
    _SUPPORTED,
)

LOCATION = (_SUPPORTED,)
PLACEMENT = (
    ConditionType(
        "Ready",
        "There is a Location that it may use.",
        ("LocationNotFound", "LocationNoMatch", "LocationInvalid"),
    ),
    ConditionType(
        "Scheduled",
        "A sync target was chosen; the message says why that one.",
        ("ScheduleLocationNotFound", "NoValidTarget", "HoldsState"),
        ("Scheduled",),
    ),
    ConditionType(
        "Synced",
        "All of it is on the sync target, as it is here.",
        ("ApplyFailed", "ClusterScopedStaysUpstream"),
        ("Synced",),
    ),
)
SYNC_TARGET = (
    ConditionType("Ready", "It answers, and takes workloads.", _OF_CLUSTERS),
    ConditionType("HeartbeatHealthy", "It answers; always as Ready.", _OF_CLUSTERS),
    ConditionType("SyncerReady", "What is written to it arrives; always as Ready.", _OF_CLUSTERS),
    ConditionType(
        "CredentialsValid",
        "Its credentials have not ended, and are renewed or have time left. Only where it is known when they end.",
        ("CredentialsEnded", "SecretNotWritable", "NotRenewable", "RenewalFailed"),
        ("CredentialsValid",),
    ),
    ConditionType(
        "InventoryExplained",
        "Of all that is ours there it is known what it is a copy of.",
        ("UnexplainedLeftovers",),
    ),
    ConditionType("LeaseHeld", "This server is the one that writes there.", ("NotHeld",)),
    _SUPPORTED,
)
NAMESPACE = (
    ConditionType(
        "NamespaceScheduled",
        "A Placement with a sync target selects it.",
        ("NotSelected", "Unschedulable"),
        ("NamespaceScheduled",),
    ),
    ConditionType(
        "NamespaceSynced",
        "All of it is on its sync targets.",
        ("ApplyFailed",),
        ("Synced",),
    ),
    ConditionType(
        "NamespaceDeletionDiscoveryFailure",
        "Of one that goes: it is not known which kinds there are. Never so here.",
        (),
        ("ResourcesDiscovered",),
    ),
    ConditionType(
        "NamespaceDeletionGroupVersionParsingFailure",
        "Of one that goes: a kind's version cannot be read. Never so here.",
        (),
        ("ParsedGroupVersions",),
    ),
    ConditionType(
        "NamespaceDeletionContentFailure",
        "Of one that goes: something in it cannot be deleted.",
        ("ContentDeletionFailed",),
        ("ContentDeleted",),
    ),
    ConditionType(
        "NamespaceContentRemaining",
        "Of one that goes: something is still in it.",
        ("SomeResourcesRemain",),
        ("ContentRemoved",),
    ),
    ConditionType(
        "NamespaceFinalizersRemaining",
        "Of one that goes: something in it waits for finalizers.",
        ("SomeFinalizersRemain",),
        ("ContentHasNoFinalizers",),
    ),
)

API_EXPORT = (
    ConditionType("IdentityValid", "Its key is there and fits its hash.", ("IdentityVerificationFailed",)),
    _OF_KUBERNETES,
)
API_BINDING = (
    ConditionType(
        _EXPORT_VALID,
        "The export is there, and offers what can be served.",
        ("APIExportNotFound", "MissingIdentityHash", "InternalError"),
    ),
    ConditionType(
        "BindingUpToDate",
        "What is served is what the export offers now.",
        ("APIResourceSchemaInvalid", *_UNBOUND),
    ),
    ConditionType(
        "InitialBindingCompleted",
        "It was bound once; what is wrong later stands in the others.",
        _UNBOUND,
    ),
    ConditionType(
        "Ready",
        "It is bound, as InitialBindingCompleted.",
        _UNBOUND,
    ),
    ConditionType(
        "PermissionClaimsValid",
        "It accepts only claims that the export makes.",
        ("InvalidPermissionClaims", "PermissionClaimsMismatch"),
    ),
    ConditionType("PermissionClaimsApplied", "What it accepts is in force.", ("APIExportNotFound",)),
    ConditionType(
        "BindingResourceDeleteSuccess",
        "Of one that goes: no object of what it bound is left.",
        ("ResourceDeletionFailed", "SomeFinalizersRemain", "SomeResourcesRemain"),
    ),
)
ENDPOINT_SLICE = (
    ConditionType(_EXPORT_VALID, "The export is there.", ("APIExportNotFound",)),
    ConditionType("PartitionValid", "The Partition is there, or none is named.", ("PartitionInvalidReference",)),
    ConditionType("EndpointURLsReady", "There is an address where consumers are seen.", ("NoConsumers", "NoShards")),
)
PARTITION_SET = (
    ConditionType("PartitionSetValid", "It can be divided by."),
    ConditionType("PartitionsReady", "Its Partitions are there.", ("ErrorGeneratingPartitions",)),
)

DEFINITION = (
    ConditionType("NamesAccepted", "It has its names.", ("NamesInUse",), ("NoConflicts",)),
    ConditionType("Established", "It is served.", ("NotAccepted", "NonStructuralSchema"), ("InitialNamesAccepted",)),
    ConditionType("NonStructuralSchema", "Its schema is not structural.", ("Violations",), only=True),
    ConditionType(
        "KubernetesAPIApprovalPolicyConformant",
        "Of a group of Kubernetes' own: it says who approved it.",
        ("MissingAnnotation", "InvalidAnnotation", "UnapprovedAnnotation"),
        ("ApprovedAnnotation",),
    ),
    ConditionType(
        "Terminating",
        "It goes, and its objects with it.",
        ("InstanceDeletionFailed",),
        (
            *("InstanceDeletionPending", "InstanceDeletionInProgress", "InstanceDeletionCompleted"),
            *("NeverEstablished", "OverlappingBuiltInResource"),
        ),
    ),
    _OF_KUBERNETES,
)
API_SERVICE = (ConditionType("Available", "It is served.", (), ("Local",)),)
POD = (ConditionType("PodScheduled", "It has a node.", ("SchedulingGated",), only=True),)
DISRUPTION_BUDGET = (
    ConditionType("DisruptionAllowed", "A Pod of it may be evicted.", ("InsufficientPods",), ("SufficientPods",)),
)
FLOW_SCHEMA = (ConditionType("Dangling", "The priority level that it names is not there.", ("Found",), only=True),)
SERVICE_CIDR = (ConditionType("Ready", "Addresses of Services come from its ranges."),)
