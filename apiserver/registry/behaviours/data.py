"""Namespace, ConfigMap, Secret, ServiceAccount."""

from __future__ import annotations

import base64
import binascii

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import IMMUTABLE, Behaviour, Object
from apiserver.registry.metadata import check_finalizer
from apiserver.schema import messages

_LIMIT = 1024 * 1024
_NAME_LABEL = "kubernetes.io/metadata.name"
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def namespace_default(obj: Object) -> None:
    obj["metadata"].setdefault("labels", {})[_NAME_LABEL] = obj["metadata"].get("name", "")
    spec = obj.setdefault("spec", {})
    if not obj["metadata"].get("deletionTimestamp"):
        spec.setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def namespace_check(obj: Object) -> list[Cause]:
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    return [c for i, name in enumerate(finalizers) for c in check_finalizer(f"spec.finalizers[{i}]", name)]


def secret_default(obj: Object) -> None:
    obj["type"] = obj.get("type") or "Opaque"
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def secret_check(obj: Object) -> list[Cause]:
    data, causes, size = obj.get("data") or {}, [], 0
    for key, value in data.items():
        causes += [messages.invalid(f"data[{key}]", key, m) for m in names.data_key(key)]
        try:
            size += len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            causes.append(messages.invalid(f"data[{key}]", "<redacted>", "must be base64"))
    if size > _LIMIT:
        causes.append(messages.too_long("data", _LIMIT))
    if obj["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        causes += [messages.required("data[username]"), messages.required("data[password]")]
    for key in _REQUIRED_KEYS.get(obj["type"], ()):
        if key not in data:
            causes.append(messages.required(f"data[{key}]"))
    account = (obj["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name")
    if obj["type"] == "kubernetes.io/service-account-token" and not account:
        causes.append(messages.required("metadata.annotations[kubernetes.io/service-account.name]"))
    return causes


def secret_update(old: Object, new: Object) -> list[Cause]:
    causes = []
    if old.get("type") != new.get("type"):
        causes.append(messages.invalid("type", new.get("type"), IMMUTABLE))
    return causes + _frozen(old, new, "data")


def config_map_check(obj: Object) -> list[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    causes = []
    for field, values in (("data", data), ("binaryData", binary)):
        for key in values:
            causes += [messages.invalid(f"{field}[{key}]", key, m) for m in names.data_key(key)]
    for key in data.keys() & binary.keys():
        causes.append(messages.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    size = sum(len(v.encode()) for v in data.values()) + sum(len(v) * 3 // 4 for v in binary.values())
    if size > _LIMIT:
        causes.append(messages.too_long("", _LIMIT))
    return causes


def config_map_update(old: Object, new: Object) -> list[Cause]:
    return _frozen(old, new, "data", "binaryData")


def _frozen(old: Object, new: Object, *fields: str) -> list[Cause]:
    """What `immutable: true` forbids."""
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    changed = [f for f in fields if (old.get(f) or {}) != (new.get(f) or {})]
    if not new.get("immutable"):
        changed.insert(0, "immutable")
    return [messages.forbidden(field, text) for field in changed]


CONFIG_MAP = Behaviour(check=config_map_check, check_update=config_map_update, any_text=frozenset({"data"}))
NAMESPACE = Behaviour(default=namespace_default, check=namespace_check)
SECRET = Behaviour(default=secret_default, check=secret_check, check_update=secret_update)
