"""Manifests: what a file declares, with the place each came from. Called by the loader, secrets and fleet.

Checks only what makes an object addressable (apiVersion, kind, name, types of metadata); what its kind demands is the
registry's to check. `index` counts a file's objects from 0, lists expanded, and with the file's blob gives lines later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from apiserver.model import marks
from apiserver.model.kinds import GroupVersionKind, split_api_version
from apiserver.model.origins import Origin
from reconciler.layout import mistaken
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.faults import type_name
from reconciler.layout.mould import Alike
from reconciler.layout.yamldoc import YamlDocument, is_list, line_of, parse, roots

SERVERS = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that only a server sets."""
OURS = (marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN, marks.CLUSTER, *marks.DECISIONS)
"""Annotations that Treeplane sets."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
SEALED = b"ENC[AES256_GCM,"
"""What a file has in it where SOPS encrypted some of its values."""
_SOPS, _MAC = "sops", "mac"
_UNREADABLE = "write encrypted_regex: ^(data|stringData)$ into the rule of .sops.yaml, and encrypt the file anew"


class SealedIn(NamedTuple):
    """The file, as it stands in git, in which a manifest is encrypted, and the number of its document."""

    data: bytes
    number: int


@dataclass(slots=True)
class Manifest:
    """One object as git declares it.

    `index` and `line` say where it stands in the text that was read, for its source and for messages: they are no part
    of what it says. `namespace` is as written, "" when it is not. `value` is the object: *.kcp.dev groups spelled
    *.kcp.io, without status and without the metadata that only servers set. `alike`: where it was found out from other
    manifests that differ in a few texts. `sealed`: where it is encrypted, and `value` is what stands in the file;
    `told` False: it was encrypted, and what it says is for the store alone, no message and no cache; `locked`: what
    stands for a value is not what was encrypted, since nobody here can read that (loading/unsealing).
    """

    origin: Origin
    index: int = field(compare=False)
    line: int = field(compare=False)
    gvk: GroupVersionKind
    namespace: str
    name: str
    value: dict[str, Any]
    alike: Alike | None = field(default=None, compare=False)
    sealed: SealedIn | None = field(default=None, compare=False)
    told: bool = field(default=True, compare=False)
    locked: bool = field(default=False, compare=False)

    @property
    def path(self) -> str:
        """The file that declares it, "" where none does."""
        return self.origin.path

    def at(self, origin: Origin) -> Manifest:
        """The same object as another file of the same content declares it."""
        return replace(self, origin=origin)

    @property
    def place(self) -> str:
        """For people: the file and the line, or what made it."""
        return f"{self.origin}:{self.line}" if self.line else str(self.origin)

    def error(self, message: str, hint: str = "") -> LayoutError:
        """A fault of this object."""
        return LayoutError(str(self.origin), self.line, 0, message, hint)


@dataclass(slots=True)
class Manifests:
    """What a file holds: its objects, its faults (objects and faults may both be there) and what was left out."""

    objects: list[Manifest] = field(default_factory=list)
    errors: list[LayoutError] = field(default_factory=list)
    notices: list[LayoutError] = field(default_factory=list)


def read(data: bytes, path: str) -> Manifests:
    """All of a file. Never raises: every fault is in `errors`."""
    out = Manifests()
    if data.startswith(LFS_POINTER):
        hint = "commit the file itself: git lfs untrack, then git add --renormalize"
        out.errors.append(LayoutError(path, 0, 0, "is a Git LFS pointer, not a manifest", hint))
        return out
    origin = Origin(path)
    try:
        documents = parse(data, path)
        marked = SEALED in data
        sealed = marked and _is_sealed(data, path)
        for index, document in enumerate(documents):
            fault = (_fault_of_sealed(document) if sealed else _fault_of_stripped(document)) if marked else None
            if fault is not None:
                out.errors.append(LayoutError(path, document.line, 0, *fault))
            elif _faults(document.value):
                document = parse(data, path, positions=True)[index]
                out.errors += _placed(document, path)
            else:
                out.objects.append(_manifest(document, origin, index, out.notices))
                if sealed:
                    out.objects[-1].sealed = SealedIn(data, index)
    except BadFile as bad:
        guess = mistaken.template(data)
        line = bad.errors[0].line if bad.errors else 0
        out.errors += bad.errors if guess is None else [LayoutError(path, line, 0, *guess)]
    return out


def may_say(data: bytes, text: bytes) -> bool:
    """Whether `text`, words without white space or quotes, may stand in a name or a value of a file. Where it does not
    stand in the file as it is, only an escape or a tag (!!binary) can make it of something else."""
    return text in data or b"\\" in data or b"!" in data


def of_document(document: YamlDocument, path: str, index: int, notices: list[LayoutError]) -> Manifest:
    """The manifest that a document is; the document's value becomes the manifest's. Raises BadFile."""
    faults = _placed(document, path)
    if faults:
        raise BadFile(faults)
    return _manifest(document, Origin(path), index, notices)


def _manifest(document: YamlDocument, origin: Origin, index: int, notices: list[LayoutError]) -> Manifest:
    """Of a document without faults."""
    value = document.value
    group, version = split_api_version(value["apiVersion"])
    if group.endswith(".kcp.dev"):
        group = group.removesuffix("dev") + "io"
        value["apiVersion"] = f"{group}/{version}"
    value.pop("status", None)
    kind, metadata = value["kind"], value["metadata"]
    dropped = _drop(metadata)
    if dropped:
        message = f"{kind} {metadata['name']}: {', '.join(dropped)} left out: only the server sets it"
        notices.append(LayoutError(origin.path, document.line, 0, message))
    gvk = GroupVersionKind(group, version, kind)
    return Manifest(origin, index, document.line, gvk, metadata.get("namespace") or "", metadata["name"], value)


def _is_sealed(data: bytes, path: str) -> bool:
    """Whether SOPS encrypted the file: it does so with all of its documents. Raises BadFile."""
    found = roots(data, path)
    sealed = any(isinstance(root.value.get(_SOPS), dict) and _MAC in root.value[_SOPS] for root in found)
    lists = [root for root in found if is_list(root.value)] if sealed else []
    if lists:
        hint = "write each Secret as a document of its own, and encrypt the file anew"
        raise BadFile([LayoutError(path, root.line, 0, "a List cannot be encrypted", hint) for root in lists])
    return sealed


def _fault_of_sealed(document: YamlDocument) -> tuple[str, str] | None:
    """Why an encrypted document is none that is read, and what to do."""
    value, metadata = document.value, document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for field_, said in (("apiVersion", value.get("apiVersion")), ("kind", value.get("kind")), ("metadata.name", name)):
        if isinstance(said, str) and said.encode().startswith(SEALED):
            return f"{field_} is encrypted, so nobody can tell which object it is", _UNREADABLE
    if (value.get("apiVersion"), value.get("kind")) != ("v1", "Secret"):
        text = f"{value.get('kind')} {name} is encrypted, and only Secrets may be"
        return text, "what other objects say goes to the status branch, reviews and sync targets: use a Secret"
    return None


def _fault_of_stripped(document: YamlDocument) -> tuple[str, str] | None:
    """The same of one in a file without what SOPS writes beside the values: they would be served as they stand."""
    parts = [document.value.get(name) for name in ("data", "stringData") if document.value.get("kind") == "Secret"]
    values = [value for part in parts if isinstance(part, dict) for value in part.values()]
    if not any(isinstance(value, str) and value.encode().startswith(SEALED) for value in values):
        return None
    return (
        "its values are encrypted, and what SOPS writes of that below sops is missing",
        "take the file as sops wrote it",
    )


class _Fault(NamedTuple):
    field: str
    message: str
    hint: str = ""


def _placed(document: YamlDocument, path: str) -> list[LayoutError]:
    """The faults with their lines, as far as the document knows them."""
    guess = mistaken.no_object(path, document.value)
    if guess is not None:
        return [LayoutError(path, document.line, 0, *guess)]
    faults = _faults(document.value)
    return [LayoutError(path, line_of(document, f.field), 0, f.message, f.hint) for f in faults]


def _faults(value: dict[str, Any]) -> list[_Fault]:
    faults: list[_Fault] = []
    api_version, kind, metadata = value.get("apiVersion"), value.get("kind"), value.get("metadata")
    if not isinstance(api_version, str) or not api_version:
        faults.append(_wrong("apiVersion", api_version, "text such as v1 or apps/v1"))
    else:
        try:
            split_api_version(api_version)
        except ValueError:
            faults.append(_Fault("apiVersion", f"apiVersion {api_version!r} is not <group>/<version>"))
    if not isinstance(kind, str) or not kind:
        faults.append(_wrong("kind", kind, "text such as Deployment"))
    if isinstance(metadata, dict):
        faults += _metadata_faults(metadata)
    else:
        faults.append(_wrong("metadata", metadata, "a mapping with a name"))
    return faults


def _metadata_faults(metadata: dict[str, Any]) -> list[_Fault]:
    faults: list[_Fault] = []
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if "generateName" in metadata and not name:
        message = "metadata.generateName cannot be used: git has to say which object it means"
        faults.append(_Fault("metadata.generateName", message, "give it a name"))
    elif not isinstance(name, str) or not name:
        faults.append(_wrong("metadata.name", name, "text"))
    if namespace is not None and not isinstance(namespace, str):
        faults.append(_wrong("metadata.namespace", namespace, "text"))
    for part in ("labels", "annotations"):
        pairs = metadata.get(part)
        if isinstance(pairs, dict):
            wrong = [(key, text) for key, text in pairs.items() if not isinstance(text, str)]
            faults += [_wrong(f"metadata.{part}[{key}]", text, "text") for key, text in wrong]
        elif pairs is not None:
            faults.append(_wrong(f"metadata.{part}", pairs, "a mapping"))
    for part in ("finalizers", "ownerReferences"):
        if not isinstance(metadata.get(part), list | None):
            faults.append(_wrong(f"metadata.{part}", metadata[part], "a list"))
    return faults


def by_others(finalizers: list[Any]) -> list[Any]:
    """Those of an object's finalizers that the server does not set by itself: what a manifest may say of them."""
    return [each for each in finalizers if each not in marks.FINALIZERS]


def _drop(metadata: dict[str, Any]) -> list[str]:
    dropped = [f"metadata.{part}" for part in SERVERS if metadata.pop(part, None) is not None]
    for part in ("labels", "annotations"):
        if part in metadata and metadata[part] is None:
            del metadata[part]
    finalizers = metadata.get("finalizers")
    if finalizers:
        dropped += [f"metadata.finalizers[{each}]" for each in finalizers if each in marks.FINALIZERS]
        metadata["finalizers"] = by_others(finalizers)
        if not metadata["finalizers"]:
            del metadata["finalizers"]
    annotations = metadata.get("annotations")
    if annotations:
        for mark in OURS:
            if annotations.pop(mark, None) is not None:
                dropped.append(f"metadata.annotations[{mark}]")
        if not annotations:
            del metadata["annotations"]
    return dropped


def _wrong(field: str, found: object, wanted: str) -> _Fault:
    if found is None or found == "":
        return _Fault(field, f"{field} is missing", f"it is {wanted}" if wanted != "text" else "")
    hint = "write it in quotes" if wanted == "text" and isinstance(found, bool | int | float) else ""
    return _Fault(field, f"{field} must be {wanted}, not {type_name(found)}", hint)
