"""Facts about kinds as data: Kubernetes' own (kubernetes.json) and Treeplane's (treeplane/*.yaml → treeplane.json)."""
