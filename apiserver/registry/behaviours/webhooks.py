"""Admission webhooks and policies: what they are by default, and what they may be. They are stored; who enforces them
is not decided here."""

from __future__ import annotations

from urllib.parse import urlsplit

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, fill, one_of, selector
from apiserver.schema import messages

_REVIEWS = ("v1", "v1beta1")
_ACTIONS = ("Audit", "Deny", "Warn")
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


def _rule_default(rule: Object) -> None:
    rule["scope"] = rule.get("scope") or "*"


def webhooks_default(obj: Object) -> None:
    for hook in obj.get("webhooks") or ():
        fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        if obj["kind"] == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        for rule in hook.get("rules") or ():
            _rule_default(rule)


def webhooks_check(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        causes += _hook_name(f"{path}.name", str(hook.get("name") or ""), seen)
        for at, rule in enumerate(hook.get("rules") or ()):
            causes += _rule(f"{path}.rules[{at}]", rule)
        causes += one_of(f"{path}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
        causes += one_of(f"{path}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
        causes += _side_effects(f"{path}.sideEffects", hook.get("sideEffects"))
        if not 1 <= hook["timeoutSeconds"] <= 30:
            text = "the timeout value must be between 1 and 30 seconds"
            causes.append(messages.invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], text))
        causes += selector(f"{path}.namespaceSelector", hook["namespaceSelector"])
        causes += selector(f"{path}.objectSelector", hook["objectSelector"])
        causes += _reviews(f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or [])
        causes += _client(f"{path}.clientConfig", hook.get("clientConfig") or {})
    return causes


def _hook_name(path: str, name: str, seen: set[str]) -> list[Cause]:
    causes = [] if name else [messages.required(path)]
    if name:
        causes += [messages.invalid(path, name, m) for m in names.dns_subdomain(name)]
        if not causes and len(name.split(".")) < 3:
            text = "should be a domain with at least three segments separated by dots"
            causes.append(messages.invalid(path, name, text))
        if name in seen:
            causes.append(messages.duplicate(path, name))
        seen.add(name)
    return causes


def _rule(path: str, rule: Object) -> list[Cause]:
    causes = [
        messages.required(f"{path}.{field}")
        for field in ("operations", "apiGroups", "apiVersions", "resources")
        if not rule.get(field)
    ]
    operations = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
    for index, operation in enumerate(rule.get("operations") or ()):
        causes += one_of(f"{path}.operations[{index}]", operation, operations)
    return causes + one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _side_effects(path: str, value: str | None) -> list[Cause]:
    if value is None:
        return [messages.required(path, "must specify one of None, NoneOnDryRun")]
    return one_of(path, value, ("None", "NoneOnDryRun"))


def _reviews(path: str, versions: list[str]) -> list[Cause]:
    if not versions:
        return [messages.required(path, f"must specify one of {', '.join(_REVIEWS)}")]
    if not set(versions) & set(_REVIEWS):
        return [messages.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")]
    return []


def _client(path: str, config: Object) -> list[Cause]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [messages.required(path, "exactly one of url or service is required")]
    if url is not None:
        parts = urlsplit(url)
        form = "desired format: https://host[/path]"
        if parts.scheme != "https":
            text = f"'https' is the only allowed URL scheme; {form}"
            return [messages.invalid(f"{path}.url", parts.scheme, text)]
        if not parts.netloc:
            return [messages.invalid(f"{path}.url", parts.netloc, f"host must be specified; {form}")]
        return []
    return [messages.required(f"{path}.service.{f}") for f in ("name", "namespace") if not (service or {}).get(f)]


def policy_default(obj: Object) -> None:
    """Of both kinds of policy."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    match_default(spec.get("matchConstraints"))


def match_default(match: Object | None) -> None:
    if match is None:
        return
    fill(match, matchPolicy="Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in [*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())]:
        _rule_default(rule)


def binding_default(obj: Object) -> None:
    match_default((obj.get("spec") or {}).get("matchResources"))


def validating_policy_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _match(spec) + one_of("spec.failurePolicy", spec["failurePolicy"], ("Fail", "Ignore"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        text = "validations or auditAnnotations must contain at least one item"
        causes += [messages.required(f"spec.{field}", text) for field in ("validations", "auditAnnotations")]
    for index, validation in enumerate(spec.get("validations") or ()):
        if not (validation.get("expression") or "").strip():
            causes.append(messages.required(f"spec.validations[{index}].expression", "expression is not specified"))
    return causes


def mutating_policy_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _match(spec) + one_of("spec.failurePolicy", spec["failurePolicy"], ("Fail", "Ignore"))
    if not spec.get("mutations"):
        causes.append(messages.required("spec.mutations", "mutations must contain at least one item"))
    if not spec.get("reinvocationPolicy"):
        causes.append(messages.required("spec.reinvocationPolicy"))
    return causes + one_of("spec.reinvocationPolicy", spec.get("reinvocationPolicy"), ("IfNeeded", "Never"))


def _match(spec: Object) -> list[Cause]:
    match = spec.get("matchConstraints")
    if match is None:
        return [messages.required("spec.matchConstraints")]
    if not match.get("resourceRules"):
        return [messages.required("spec.matchConstraints.resourceRules")]
    rules = enumerate(match["resourceRules"])
    return [c for at, rule in rules for c in _rule(f"spec.matchConstraints.resourceRules[{at}]", rule)]


def validating_binding_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = [] if spec.get("policyName") else [messages.required("spec.policyName")]
    actions = spec.get("validationActions") or []
    if not actions:
        causes.append(messages.required("spec.validationActions"))
    for index, action in enumerate(actions):
        causes += one_of(f"spec.validationActions[{index}]", action, _ACTIONS)
    if {"Deny", "Warn"} <= set(actions):
        causes.append(messages.invalid("spec.validationActions", actions, _BOTH))
    return causes


def mutating_binding_check(obj: Object) -> list[Cause]:
    return [] if (obj.get("spec") or {}).get("policyName") else [messages.required("spec.policyName")]


WEBHOOKS = Behaviour(webhooks_default, webhooks_check)

MUTATING_ADMISSION_POLICY = Behaviour(policy_default, mutating_policy_check)
MUTATING_ADMISSION_POLICY_BINDING = Behaviour(binding_default, mutating_binding_check)
VALIDATING_ADMISSION_POLICY = Behaviour(policy_default, validating_policy_check)
VALIDATING_ADMISSION_POLICY_BINDING = Behaviour(binding_default, validating_binding_check)
