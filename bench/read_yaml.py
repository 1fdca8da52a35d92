"""Documents read per second on one core, beside PyYAML's own safe loader: `python bench/read_yaml.py [seconds]`.

A small custom resource, a Deployment of 1 kB without and with an anchor, a file of the size of a CRD, JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import yaml

from reconciler.layout.manifest import read
from reconciler.layout.yamldoc import parse

SMALL = b"apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: one\nspec:\n  size: 3\n  colour: red\n"
DEPLOYMENT = b"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-12
  namespace: shop
  labels:
    app: web
    team: "shop"
spec:
  replicas: 3
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
      annotations:
        prometheus.io/scrape: "true"
    spec:
      containers:
        - name: web
          image: nginx:1.25
          imagePullPolicy: IfNotPresent
          ports:
            - containerPort: 8080
              name: http
          env:
            - name: A
              value: "1"
            - name: LEVEL
              value: info
          resources:
            requests:
              cpu: 100m
              memory: 64Mi
            limits:
              cpu: 500m
              memory: 128Mi
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            initialDelaySeconds: 5
            periodSeconds: 10
          readinessProbe:
            httpGet:
              path: /ready
              port: http
      serviceAccountName: web
"""
ANCHORED = DEPLOYMENT.replace(b"      app: web\n  template", b"      app: &app web\n  template")
ITEM = b"    - name: item-%d\n      description: what it is for, in some words\n      type: string\n      order: %d\n"
LARGE = b"apiVersion: v1\nkind: Large\nmetadata:\n  name: large\nspec:\n  items:\n" + b"".join(
    b"    - name: item-%d\n      description: what it is for, in some words\n      type: string\n      order: %d\n"
    % (i, i)
    for i in range(200)
)


def rate(work: Callable[[], object], seconds: float) -> float:
    """Runs per second of CPU, the best of five rounds."""
    best = 0.0
    for _ in range(5):
        count, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds / 5:
            work()
            count += 1
        best = max(best, count / spent)
    return best


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    print(f"{'file':<12} {'bytes':>6} {'parse/s':>9} {'manifest/s':>11} {'CSafeLoader/s':>14}")
    for name, data in (("small", SMALL), ("deployment", DEPLOYMENT), ("anchored", ANCHORED), ("large", LARGE)):
        ours = rate(lambda data=data: parse(data, "f.yaml"), seconds)
        whole = rate(lambda data=data: read(data, "f.yaml"), seconds)
        theirs = rate(lambda data=data: yaml.load(data, Loader=yaml.CSafeLoader), seconds)
        print(f"{name:<12} {len(data):>6} {ours:>9.0f} {whole:>11.0f} {theirs:>14.0f}")
    text = json.dumps(parse(DEPLOYMENT, "f.yaml")[0].value).encode()
    print(f"{'json':<12} {len(text):>6} {rate(lambda: parse(text, 'f.json'), seconds):>9.0f}")


if __name__ == "__main__":
    main()
