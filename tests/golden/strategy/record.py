"""Asks a real kube-apiserver what it makes of corpus.yaml, and writes answers.json beside it.

    python tests/golden/strategy/record.py https://127.0.0.1:6443 <token of an admin>

Every object is created with dryRun=All in the namespace `default`. What differs from run to run is left out.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from apiserver.registry.kinds import target_builtins

HERE = Path(__file__).parent
VARYING = ("uid", "creationTimestamp", "managedFields", "generation", "resourceVersion")


def ask(server: str, token: str, obj: dict[str, Any]) -> dict[str, Any]:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = target_builtins().by_kind(group, version, obj["kind"])
    assert kind is not None, obj["kind"]
    root = f"/apis/{obj['apiVersion']}" if group else f"/api/{version}"
    path = f"{root}/namespaces/default/{kind.resource}" if kind.namespaced else f"{root}/{kind.resource}"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps(obj).encode()
    request = urllib.request.Request(f"{server}{path}?dryRun=All", body, headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            stored = json.load(answer)
    except urllib.error.HTTPError as error:
        refusal = json.load(error)
        causes = [[c["field"], c["message"]] for c in refusal.get("details", {}).get("causes", [])]
        return {"code": error.code, "causes": sorted(causes)}
    for field in VARYING:
        stored["metadata"].pop(field, None)
    return {"stored": stored}


def main(server: str, token: str) -> None:
    objects = list(yaml.safe_load_all((HERE / "corpus.yaml").read_text()))
    answers = {f"{o['kind']}/{o['metadata']['name']}": ask(server, token, o) for o in objects}
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
