"""Small repositories that are no fleets: for Flux, for Argo CD, plain ones, charts. By path, what stands there."""

from __future__ import annotations


def deployment(name: str, namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}{where}}}\nspec:\n"
        f"  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n"
        f"    spec: {{containers: [{{name: {name}, image: registry.example/{name}}}]}}\n"
    )


def configmap(name: str, namespace: str = "") -> str:
    where = f", namespace: {namespace}" if namespace else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{where}}}\n"


def definition(kind: str, group: str = "lab.example") -> str:
    plural = f"{kind.lower()}s"
    return (
        f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n"
        f"spec:\n  group: {group}\n  scope: Namespaced\n"
        f"  names: {{plural: {plural}, singular: {kind.lower()}, kind: {kind}}}\n"
        "  versions:\n    - name: v1\n      served: true\n      storage: true\n"
        "      schema: {openAPIV3Schema: {type: object}}\n"
    )


def kustomization(*resources: str, more: str = "") -> str:
    listed = "".join(f"  - {each}\n" for each in resources)
    return f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}{more}"


def flux(name: str, path: str, more: str = "") -> str:
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  prune: true\n  interval: 10m\n"
        f"  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}"
    )


def application(name: str, path: str, namespace: str = "shop") -> str:
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\n"
        f"spec:\n  project: default\n  source: {{repoURL: https://git.example/shop.git, path: {path}}}\n"
        f"  destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}\n"
    )


PLAIN = {
    "README.md": "# Ours\n",
    "shop/web.yaml": deployment("web", "shop"),
    "shop/jobs/settings.yaml": configmap("settings", "shop"),
    "media/player.yaml": deployment("player"),
    "media/values.yaml": "replicas: 3\n",
    "media/docker-compose.yml": "services:\n  db: {image: postgres}\n",
}

FLUX = {
    "clusters/staging/flux-system/gotk-components.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n"
    "  name: flux-system\n  labels: {app.kubernetes.io/part-of: flux}\n",
    "clusters/staging/flux-system/gotk-sync.yaml": flux("flux-system", "./clusters/staging"),
    "clusters/staging/flux-system/kustomization.yaml": kustomization("gotk-components.yaml", "gotk-sync.yaml"),
    "clusters/staging/apps.yaml": flux("apps", "./apps/staging"),
    "clusters/staging/infra.yaml": flux("infra", "./infrastructure", "  targetNamespace: infra\n"),
    "clusters/production/apps.yaml": flux("apps", "./apps/production"),
    "clusters/production/infra.yaml": flux("infra", "./infrastructure"),
    "apps/base/web/kustomization.yaml": kustomization("web.yaml", more="namespace: web\n"),
    "apps/base/web/web.yaml": deployment("web"),
    "apps/staging/kustomization.yaml": kustomization("../base/web", "settings.yaml", more="nameSuffix: -staging\n"),
    "apps/staging/settings.yaml": configmap("settings", "web"),
    "apps/production/kustomization.yaml": kustomization("../base/web", more="nameSuffix: -production\n"),
    "apps/unused/unused.yaml": configmap("unused"),
    "infrastructure/quota.yaml": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: all, namespace: infra}\n"
    "spec: {}\n",
}

ARGO = {
    "argocd/web.yaml": application("web", "apps/web"),
    "argocd/all.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec:\n"
    "  generators:\n    - git:\n        directories: [{path: teams/*}, {path: teams/old, exclude: true}]\n"
    "  template: {metadata: {name: x}, spec: {source: {path: '{{path}}'}, destination: {namespace: teams}}}\n",
    "apps/web/web.yaml": deployment("web", "shop"),
    "apps/none/none.yaml": configmap("none"),
    "teams/red/red.yaml": configmap("red"),
    "teams/Blue_Team/blue.yaml": configmap("blue"),
    "teams/old/old.yaml": configmap("old"),
}

OVERLAYS = {
    "base/kustomization.yaml": kustomization("web.yaml"),
    "base/web.yaml": deployment("web"),
    "overlays/a/kustomization.yaml": kustomization("../../base"),
    "overlays/b/kustomization.yaml": kustomization("../../base", more="namePrefix: b-\n"),
    "other/other.yaml": configmap("other"),
}
