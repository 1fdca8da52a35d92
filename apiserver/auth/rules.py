"""One RBAC rule, compiled: does it cover a request?

Made by policy.py from the `rules` of roles. Matching follows kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from apiserver.auth.user import Attributes


@dataclass(frozen=True, slots=True)
class Rule:
    """`names` empty: any name. `urls` are non-resource URLs, whose last character may be `*`."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: tuple[str, ...] = ()

    @staticmethod
    def of(rule: dict[str, Any]) -> Rule:
        """From an object's entry. What is absent or null covers nothing."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames")
        verbs, groups, resources, names = (frozenset(rule.get(field) or ()) for field in fields)
        return Rule(verbs, groups, resources, names, tuple(rule.get("nonResourceURLs") or ()))

    def covers(self, asked: Attributes) -> bool:
        if "*" not in self.verbs and asked.verb not in self.verbs:
            return False
        if asked.path:
            return any(_url_matches(url, asked.path) for url in self.urls)
        return (
            ("*" in self.groups or asked.group in self.groups)
            and self._resource_matches(asked)
            and (not self.names or asked.name in self.names)
        )

    def names_covered(self, asked: Attributes) -> Iterable[str]:
        """The names of objects for which the rule covers `asked`, whatever name that has; one that is "": all."""
        names = self.names or ("",)
        return names if self.covers(replace(asked, name=next(iter(names)))) else ()

    def _resource_matches(self, asked: Attributes) -> bool:
        if "*" in self.resources or asked.qualified_resource in self.resources:
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in self.resources

    def as_resource_rule(self) -> dict[str, list[str]]:
        """An entry of `resourceRules` in a SelfSubjectRulesReview."""
        found = {
            "verbs": sorted(self.verbs),
            "apiGroups": sorted(self.groups),
            "resources": sorted(self.resources),
        }
        return {**found, "resourceNames": sorted(self.names)} if self.names else found

    def as_url_rule(self) -> dict[str, list[str]]:
        """An entry of `nonResourceRules`."""
        return {"verbs": sorted(self.verbs), "nonResourceURLs": list(self.urls)}


def compiled(rules: Iterable[dict[str, Any]] | None) -> tuple[Rule, ...]:
    return tuple(Rule.of(rule) for rule in rules or ())


def _url_matches(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))
