"""Roles and bindings. Who may grant what (escalation) is admission's."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, selector
from apiserver.schema import messages

_GROUP = "rbac.authorization.k8s.io"


def binding_default(obj: Object) -> None:
    reference = obj.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or _GROUP
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _GROUP


def role_check(obj: Object) -> list[Cause]:
    return _rules(obj, namespaced=True)


def cluster_role_check(obj: Object) -> list[Cause]:
    causes = _rules(obj, namespaced=False)
    selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if obj.get("aggregationRule") is not None and not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        causes.append(messages.required("aggregationRule.clusterRoleSelectors", text))
    for index, found in enumerate(selectors or ()):
        causes += selector(f"aggregationRule.clusterRoleSelectors[{index}]", found)
    return causes


def _rules(obj: Object, namespaced: bool) -> list[Cause]:
    causes = []
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            causes.append(messages.required(f"{path}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                causes.append(messages.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], text))
            if any(rule.get(f) for f in ("apiGroups", "resources", "resourceNames")):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                causes.append(messages.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], text))
            continue
        if not rule.get("apiGroups"):
            text = "resource rules must supply at least one api group"
            causes.append(messages.required(f"{path}.apiGroups", text))
        if not rule.get("resources"):
            text = "resource rules must supply at least one resource"
            causes.append(messages.required(f"{path}.resources", text))
    return causes


def binding_check(obj: Object) -> list[Cause]:
    """Of RoleBinding and ClusterRoleBinding."""
    namespaced = obj.get("kind") == "RoleBinding"
    reference, causes = obj["roleRef"], []
    if reference["apiGroup"] != _GROUP:
        causes.append(messages.unsupported("roleRef.apiGroup", reference["apiGroup"], [_GROUP]))
    allowed = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.get("kind") not in allowed:
        causes.append(messages.unsupported("roleRef.kind", reference.get("kind") or "", list(allowed)))
    if not reference.get("name"):
        causes.append(messages.required("roleRef.name"))
    else:
        causes += [
            messages.invalid("roleRef.name", reference["name"], m) for m in names.path_segment(reference["name"])
        ]
    for index, subject in enumerate(obj.get("subjects") or ()):
        causes += _subject(f"subjects[{index}]", subject, namespaced)
    return causes


def _subject(path: str, subject: Object, namespaced: bool) -> list[Cause]:
    causes = []
    if not subject.get("name"):
        causes.append(messages.required(f"{path}.name"))
    kind, group = subject.get("kind", ""), subject.get("apiGroup") or ""
    if kind == "ServiceAccount":
        if group:
            causes.append(messages.unsupported(f"{path}.apiGroup", group, [""]))
        if subject.get("name"):
            found = names.dns_subdomain(subject["name"])
            causes += [messages.invalid(f"{path}.name", subject["name"], m) for m in found]
        if not namespaced and not subject.get("namespace"):
            causes.append(messages.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != _GROUP:
            causes.append(messages.unsupported(f"{path}.apiGroup", group, [_GROUP]))
    else:
        causes.append(messages.unsupported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return causes


def binding_update(old: Object, new: Object) -> list[Cause]:
    if old.get("roleRef") == new["roleRef"]:
        return []
    return [messages.invalid("roleRef", new["roleRef"], "cannot change roleRef")]


BINDING = Behaviour(default=binding_default, check=binding_check, check_update=binding_update)

CLUSTER_ROLE = Behaviour(check=cluster_role_check)
ROLE = Behaviour(check=role_check)
