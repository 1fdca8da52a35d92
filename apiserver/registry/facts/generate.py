"""Distils the facts files of a Kubernetes version, and our own kinds' YAML, into the data that the program loads.

    python -m apiserver.registry.facts.generate <folder with kubernetes-<version>-{resources,schemas}.json>

Without a folder only treeplane.json is made anew. Run by hand when Kubernetes or a definition changes; the results are
committed beside this file. Only definitions that a served kind reaches are kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

from apiserver.registry.builtins.groups import GROUPS

HERE = Path(__file__).parent
ALSO = ("io.k8s.api.authentication.v1.TokenRequest", "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")  # fmt: skip
_REF = re.compile(rb'"#/components/schemas/([^"]+)"')


def resources(facts: list[dict[str, Any]], kinds: dict[tuple[str, str, str], str]) -> list[dict[str, Any]]:
    """Served resources, each with the name of its definition under `schema`."""
    found = []
    for fact in facts:
        group = fact.get("group", "")
        if group not in GROUPS:
            continue
        found.append(
            {
                "group": group,
                "version": fact["version"],
                "resource": fact["resource"],
                "singular": fact["singular"],
                "kind": fact["kind"],
                "namespaced": fact["scope"] == "Namespaced",
                "verbs": fact["verbs"],
                "short_names": fact.get("shortNames", []),
                "categories": fact.get("categories", []),
                "subresources": [s["name"] for s in fact.get("subresources", [])],
                "schema": kinds[group, fact["version"], fact["kind"]],
            }
        )
    return found


def reachable(roots: list[str], definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions that `roots` name, directly or not."""
    found: dict[str, Any] = {}
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = definitions[name]
            todo += [match.decode() for match in _REF.findall(orjson.dumps(definitions[name]))]
    return dict(sorted(found.items()))


def kubernetes(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("kubernetes-*-schemas.json")
    version = path.name.split("-")[1]
    text = path.read_bytes().replace(b"#/definitions/", b"#/components/schemas/")
    definitions = orjson.loads(text)
    kinds = {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, definition in definitions.items()
        for gvk in definition.get("x-kubernetes-group-version-kind", ())
    }
    listed = resources(orjson.loads((folder / f"kubernetes-{version}-resources.json").read_bytes()), kinds)
    roots = [r["schema"] for r in listed] + list(ALSO)
    return {"version": version, "resources": listed, "definitions": reachable(roots, definitions)}


def treeplane() -> list[dict[str, Any]]:
    """Our own kinds, in CRD form, in the files' order."""
    shared = yaml.safe_load((HERE / "shared.yaml").read_text())
    found: list[dict[str, Any]] = []
    for path in sorted((HERE / "treeplane").glob("*.yaml")):
        found += [filled(d, shared) for d in yaml.safe_load_all(path.read_text()) if d]
    return found


def filled(schema: Any, shared: dict[str, Any]) -> Any:
    """`schema` with `{$use: name}` replaced by what `shared` has under that name."""
    if isinstance(schema, list):
        return [filled(item, shared) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$use" in schema:
        return filled(shared[schema["$use"]], shared)
    return {key: filled(value, shared) for key, value in schema.items()}


def main(arguments: list[str]) -> None:
    if arguments:
        (HERE / "kubernetes.json").write_bytes(orjson.dumps(kubernetes(Path(arguments[0]))))
    # A kind a line: two that change at once are no conflict.
    kinds = b",\n".join(orjson.dumps(kind) for kind in treeplane())
    (HERE / "treeplane.json").write_bytes(b"[\n%b\n]\n" % kinds)


if __name__ == "__main__":
    main(sys.argv[1:])
