"""An API that a provider offers, with permission claims, as kcp's examples have it."""

from __future__ import annotations

EXPORT = """\
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: today.cowboys.wildwest.dev}
spec:
  group: wildwest.dev
  names: {plural: cowboys, singular: cowboy, kind: Cowboy, listKind: CowboyList}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {type: object, properties: {spec: {type: object, properties: {intent: {type: string}}}}}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: cowboys}
spec:
  resources: [{name: cowboys, group: wildwest.dev, schema: today.cowboys.wildwest.dev, storage: {crd: {}}}]
  permissionClaims: [{group: "", resource: configmaps, verbs: [get, list]}, {resource: secrets, verbs: ["*"]}]
"""
COWBOY = "apiVersion: wildwest.dev/v1alpha1\nkind: Cowboy\nmetadata: {name: lucky}\nspec: {intent: ride}\n"
