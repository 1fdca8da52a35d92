"""What the generic write path checks of a request's object against its URL, the live object and its surroundings.

Called by the write path (rest), deletion.py and the endpoints. What is checked of the content is strategy.py's.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.model import marks
from apiserver.model.errors import StatusError, bad_request, conflict, forbidden, invalid, not_found
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, CRDS, LOGICAL_CLUSTERS
from apiserver.registry import codec, strategy, tree
from apiserver.registry.boundresources import ending
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.rest_options import IGNORE, STRICT, Collection, Object, WriteOptions
from apiserver.registry.served import ServedKind
from apiserver.schema import messages
from apiserver.storage.protocol import NEVER, Check

_SHIPPED = having(lambda kind: kind.export)
"""What bindings bring under its own store name."""
_TERMINATING = "create not allowed while custom resource definition is terminating"


def check_identity(kind: ServedKind, obj: Object, namespace: str, name: str) -> None:
    """Kind, version, namespace and name of the body against the URL. Raises StatusError 400."""
    found_kind, version = obj.get("kind"), obj.get("apiVersion")
    if kind.custom and not found_kind:
        text = codec.dump(obj).decode()
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object 'Kind' is missing in '{text}'"
        )
    if (found_kind and found_kind != kind.kind) or (version and version != kind.api_version):
        found = f"{found_kind or kind.kind}", f"{version or kind.api_version}"
        raise bad_request(
            f'{found[0]} in version "{found[1].rpartition("/")[2]}" cannot be handled as a {kind.kind}: '
            f"it is {found[1]}, Kind={found[0]}, not {kind.api_version}, Kind={kind.kind}"
        )
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                          "metadata is not an object")  # fmt: skip
    if metadata is None:
        obj.pop("metadata", None)  # null is absent
    metadata = metadata or {}
    if kind.namespaced and metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not kind.namespaced:
        metadata.pop("namespace", None)  # tools set it on everything they apply
    if name and metadata.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    obj.setdefault("kind", kind.kind)
    obj.setdefault("apiVersion", kind.api_version)


def check_applied(kind: ServedKind, applied: Object, namespace: str, name: str) -> None:
    version, found = applied.get("apiVersion") or "", applied.get("kind") or ""
    if (version, found) != (kind.api_version, kind.kind):
        group_version = version if "/" in str(version) else f"/{version}"
        raise bad_request(f"invalid object type: {group_version}, Kind={found}")
    check_identity(kind, applied, namespace, name)
    if (applied.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")


def asked_revision(metadata: Object) -> str:
    """The resourceVersion that a write is meant for; "" for any, which clients also say as `0`. Raises StatusError 400
    for what is no number."""
    asked = str(metadata.get("resourceVersion") or "")
    if not asked:
        return ""
    if not (asked.isascii() and asked.isdigit()):
        raise bad_request(f"strconv.ParseUint: parsing {messages.quote(asked)}: invalid syntax")
    return asked.lstrip("0")


def check_unversioned(metadata: Object) -> None:
    """Of an object that is to be made. What is no number is taken for nothing. Raises StatusError 400."""
    asked = str(metadata.get("resourceVersion") or "")
    if asked.isascii() and asked.isdigit() and asked.lstrip("0"):
        raise bad_request("resourceVersion should not be set on objects to be created")


def check_revision(kind: ServedKind, key: Key, live: Object, new: Object) -> None:
    metadata = new.get("metadata") or {}
    asked = asked_revision(metadata)
    if asked and asked != live["metadata"]["resourceVersion"]:
        raise conflict(kind.resource, kind.group, key.name)


def check_uid(kind: ServedKind, key: Key, live: Object, new: Object) -> None:
    """What a PUT is meant for. (In a patch it is a field that does not change.)"""
    uid = (new.get("metadata") or {}).get("uid")
    if uid and uid != live["metadata"].get("uid"):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live['metadata'].get('uid')}"
        raise conflict(kind.resource, kind.group, key.name, why)


def check_creation(kind: ServedKind, name: str, applied: Object) -> None:
    """Of an apply of what is absent: an object that is meant by its uid is not made anew, and a new one says its own
    name. `applied`: as it was sent."""
    metadata = applied.get("metadata") or {}
    if metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise conflict(kind.resource, kind.group, name, why)
    if not metadata.get("name"):
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def check_cluster(at: Collection, key: Key) -> Check:
    """Nothing new comes into a workspace that is being deleted, or is gone. To be checked again by the write itself: a
    workspace goes with all that is known to be in it. (In a cluster's own store none of this is there.)"""
    place = tree.cluster_key(at.cluster)
    there, found = at.store.get_many([place, Key(LOGICAL_CLUSTERS, at.cluster, "", "cluster")])
    if there is None and marks.CLUSTER in at.marks:
        raise _terminated(at, key, at.cluster)
    if found is not None and b'"deletionTimestamp"' in found.value:
        metadata = codec.decode(found.value, found.revision)["metadata"]
        if metadata.get("deletionTimestamp"):
            raise _terminated(at, key, (metadata.get("annotations") or {}).get(marks.PATH, at.cluster))
    return Check(place, there.revision if there is not None else NEVER)


def _terminated(at: Collection, key: Key, workspace: str) -> StatusError:
    why = f"unable to create new content in workspace {workspace} because it is being terminated"
    return forbidden(at.kind.resource, at.kind.group, key.name, why)


def check_namespace(at: Collection, key: Key) -> None:
    """The namespace of a new object has to exist and to stay."""
    if not key.namespace:
        return
    found = at.store.get(Key("namespaces", at.cluster, "", key.namespace))
    if found is None:
        raise not_found("namespaces", "", key.namespace)
    if codec.decode(found.value, found.revision)["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
        error = forbidden(at.kind.resource, at.kind.group, key.name, why)
        message = f"namespace {key.namespace} is being terminated"
        error.details["causes"] = [
            {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        ]
        raise error


@dataclass(frozen=True, slots=True)
class Patched:
    """That an object is the result of a patch; `strategic`: of this strategic merge patch, which Kubernetes applies to
    Go's values, not to JSON, and which it shows in errors instead of the object."""

    strategic: Object | None = None

    def shown(self, obj: Object) -> str:
        if self.strategic is not None:
            return messages.go_printed(self.strategic)
        return codec.dump(obj).decode()


def check_types(kind: ServedKind, obj: Object, patched: Patched | None = None) -> None:
    """What Go could not read into Kubernetes' own types. Raises StatusError 400; for a patched object 422."""
    if kind.custom:
        return
    converted = patched is not None and patched.strategic is not None
    wrong = next(iter(kind.schema.decode_errors(obj, converted=converted)), None)
    if wrong is not None:
        raise _unreadable(kind, wrong, patched.shown(obj) if patched else None)


def check_definition(at: Collection, name: str) -> None:
    """Nothing is made anew of a definition, or a binding, that is being deleted."""
    if ":" in at.kind.storage or at.kind.storage in _SHIPPED:
        _check_binding(at, name)
        return
    if not at.kind.definition:
        return
    found = at.store.get(Key(CRDS, at.cluster, "", at.kind.definition))
    if found is None or b'"deletionTimestamp"' not in found.value:
        return
    if codec.decode(found.value, found.revision)["metadata"].get("deletionTimestamp"):
        raise forbidden(at.kind.resource, at.kind.group, name, _TERMINATING)


def _check_binding(at: Collection, name: str) -> None:
    records = at.store.scan(BINDINGS, at.cluster, count=False).records
    if not any(b'"deletionTimestamp"' in record.value for record in records):
        return
    going = ending(codec.decode(record.value, record.revision) for record in records)
    if any(each.storage == at.kind.storage for each in going):
        raise forbidden(at.kind.resource, at.kind.group, name, _TERMINATING)


def unknown_fields(
    at: Collection, obj: Object, options: WriteOptions, patched: Patched | None = None
) -> tuple[str, ...]:
    """Warnings for fields that nobody knows and for those that stand twice; with STRICT they are an error."""
    if options.validation == IGNORE:
        return ()
    unknown = tuple(f'unknown field "{f}"' for f in strategy.unknown_fields(at.kind, obj))
    # What YAML says twice is found while it is made into JSON, before anything else.
    of_yaml = bool(options.repeated) and options.repeated[0].startswith("yaml: ")
    repeated_first = of_yaml or patched is not None or at.kind.custom
    texts = options.repeated + unknown if repeated_first else unknown + options.repeated
    if not texts or options.validation != STRICT:
        return texts
    why = f"strict decoding error: {', '.join(texts)}"
    raise _unreadable(at.kind, why, patched.shown(obj) if patched else None)


def _unreadable(kind: ServedKind, why: str, patched: str | None) -> StatusError:
    if patched is None:
        return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')
    return invalid("", "", "", [messages.invalid("patch", patched, why)])


def finished(obj: Object) -> bool:
    """Whether a deletion that waited for finalizers is complete."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (obj["kind"] == "Namespace" and obj["apiVersion"] == "v1" and (obj.get("spec") or {}).get("finalizers"))
