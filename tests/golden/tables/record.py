"""Asks a real kube-apiserver for the tables of corpus.yaml's objects, and writes answers.json beside it.

    kubectl apply -f tests/golden/tables/corpus.yaml      # twice: the CustomResourceDefinition comes first
    python tests/golden/tables/record.py https://127.0.0.1:6443 <token of an admin>

Without controllers, so that statuses stay as they are. What differs from run to run is left out.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from apiserver.registry.kinds import kinds_of_crd, target_builtins

HERE = Path(__file__).parent
VARYING = ("uid", "managedFields", "resourceVersion")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def get(server: str, token: str, path: str, accept: str = "application/json") -> Any:
    request = urllib.request.Request(server + path, headers={"Authorization": f"Bearer {token}", "Accept": accept})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        return json.load(answer)


def place(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def main(server: str, token: str) -> None:
    corpus = list(yaml.safe_load_all((HERE / "corpus.yaml").read_text()))
    wanted = {(o["kind"], o["metadata"]["name"]) for o in corpus}
    definition = next(o for o in corpus if o["kind"] == "CustomResourceDefinition")
    answers: dict[str, Any] = {}
    for kind in [*target_builtins().all(), *kinds_of_crd(definition)]:
        if not any(name == kind.kind for name, _ in wanted):
            continue
        path = f"{'/apis' if kind.group else '/api'}/{kind.api_version}/{kind.resource}"
        table = get(server, token, path, TABLE)
        cells = {place(row["object"]): row["cells"] for row in table["rows"] or ()}
        columns = [[c["name"], c["type"], c["format"], c["priority"]] for c in table["columnDefinitions"]]
        rows = []
        for item in get(server, token, path)["items"]:
            if (kind.kind, item["metadata"]["name"]) in wanted:
                shown = cells[place(item)]
                kept = {k: v for k, v in item["metadata"].items() if k not in VARYING}
                kept.get("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
                rows.append([{"apiVersion": kind.api_version, "kind": kind.kind, **item, "metadata": kept}, shown])
        answers[f"{kind.api_version} {kind.kind}"] = {"columns": columns, "rows": rows}
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
