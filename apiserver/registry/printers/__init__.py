"""How kubectl shows Kubernetes' own kinds: columns, and the cells of an object, by kind family."""
