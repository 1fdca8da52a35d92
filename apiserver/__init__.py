"""The Kubernetes API of every workspace, served from the store. Imports nothing of `reconciler`."""
