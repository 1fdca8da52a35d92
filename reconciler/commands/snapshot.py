"""`treeplane crd snapshot`: APIResourceSchemas that say what CustomResourceDefinitions say, to be offered in an
APIExport.

Definitions are filled in and judged by the registry, and so are the schemas that are made of them: what is printed is
taken by a server.
"""

from __future__ import annotations

import json
from typing import Any

from apiserver.registry import strategy
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.served import ServedKind
from reconciler.commands.failure import Failure
from reconciler.layout.dump import dump
from reconciler.layout.errors import BadFile
from reconciler.layout.yamldoc import parse

Object = dict[str, Any]

_CRD = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_SCHEMA = ("apis.kcp.io", "v1alpha1", "apiresourceschemas")
_SAME = (
    "name", "served", "storage", "deprecated", "deprecationWarning", "additionalPrinterColumns", "selectableFields",
)  # fmt: skip
"""Fields of a version that both have."""


def snapshot(data: bytes, file: str, prefix: str, form: str = "yaml") -> str:
    """A document for each definition in a file, and `---` behind it. Raises Failure."""
    try:
        documents = parse(data, file)
    except BadFile as error:
        raise Failure("\n".join(map(str, error.errors))) from error
    made = [_schema(document.value, f"{file}:{document.line}", prefix) for document in documents]
    texts = [dump(each).decode() if form == "yaml" else json.dumps(each, indent=4) + "\n" for each in made]
    return "".join(f"{text}---\n" for text in texts)


def _schema(definition: Object, where: str, prefix: str) -> Object:
    kind, api = definition.get("kind"), definition.get("apiVersion")
    if (kind, api) != ("CustomResourceDefinition", "apiextensions.k8s.io/v1"):
        raise Failure(f"{where}: this is a {kind} of {api}, not a CustomResourceDefinition of apiextensions.k8s.io/v1")
    name = (definition.get("metadata") or {}).get("name")
    crd: Object = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": definition.get("spec")}
    _judge(crd, _CRD, where)
    schema: Object = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": f"{prefix}.{name}"},
        "spec": _spec(crd["spec"], where),
    }
    _judge(schema, _SCHEMA, where)
    return schema


def _judge(obj: Object, resource: tuple[str, str, str], where: str) -> None:
    """Fills in defaults. Raises Failure."""
    kind = workspace_builtins().by_resource(*resource)
    assert isinstance(kind, ServedKind)
    causes = strategy.prepare(kind, obj)
    if causes:
        said = "\n".join(f"{where}: {cause.field}: {cause.message}" for cause in causes)
        raise Failure(f"{said}\n(of {obj['kind']} {obj['metadata']['name']})")


def _spec(spec: Object, where: str) -> Object:
    versions = [_version(version) for version in spec["versions"]]
    return {
        "group": spec["group"],
        "names": spec["names"],
        "scope": spec["scope"],
        "conversion": _conversion(spec["conversion"], where),
        "versions": versions,
    }


def _conversion(conversion: Object, where: str) -> Object:
    webhook = conversion.get("webhook")
    if not webhook:
        return {"strategy": conversion["strategy"]}
    client = webhook["clientConfig"]
    if client.get("service"):
        raise Failure(
            f"{where}: webhooks that refer to services are not supported, please use URL instead",
            "a Service of this workspace means nothing in those that bind the export",
        )
    kept = {field: client[field] for field in ("url", "caBundle") if client.get(field)}
    return {"strategy": conversion["strategy"], "webhook": {**webhook, "clientConfig": kept}}


def _version(version: Object) -> Object:
    same = {field: version[field] for field in _SAME if field in version}
    return {**same, "schema": version["schema"]["openAPIV3Schema"], "subresources": version.get("subresources") or {}}
