"""Asks a real kube-apiserver what it makes of corpus.yaml and updates.yaml, and writes answers.json and updates.json.

    python tests/golden/strategy/record.py https://127.0.0.1:6443 <token of an admin>

Objects of the corpus are created with dryRun=All in the namespace `default`; those of the updates are created, patched
with dryRun=All, and deleted. What differs from run to run is left out.
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


def path_of(obj: dict[str, Any]) -> str:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = target_builtins().by_kind(group, version, obj["kind"])
    assert kind is not None, obj["kind"]
    root = f"/apis/{obj['apiVersion']}" if group else f"/api/{version}"
    return f"{root}/namespaces/default/{kind.resource}" if kind.namespaced else f"{root}/{kind.resource}"


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> dict[str, Any]:
        """`{"stored": object}` or `{"code": …, "causes": [[field, message], …]}`."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": media}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
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

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        return self.ask("POST", f"{path_of(obj)}?dryRun=All", obj)

    def update(self, base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        """Only whether it is refused: what is stored follows from what creating it stores."""
        path = f"{path_of(base)}/{base['metadata']['name']}"
        made = self.ask("POST", path_of(base), base)
        assert "stored" in made, made
        answer = self.ask("PATCH", f"{path}?dryRun=All", patch, "application/merge-patch+json")
        self.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        self.ask("DELETE", f"{path}?gracePeriodSeconds=0", {"propagationPolicy": "Background"})
        return {} if "stored" in answer else answer


def name_of(obj: dict[str, Any]) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def main(url: str, token: str) -> None:
    server = Server(url, token)
    objects = list(yaml.safe_load_all((HERE / "corpus.yaml").read_text()))
    write("answers.json", {name_of(o): server.create(o) for o in objects})
    cases = yaml.safe_load((HERE / "updates.yaml").read_text())
    write("updates.json", {name_of(c["base"]): server.update(c["base"], c["patch"]) for c in cases})


def write(name: str, answers: dict[str, Any]) -> None:
    (HERE / name).write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
