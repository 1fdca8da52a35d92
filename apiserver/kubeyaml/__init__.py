"""YAML as Kubernetes' programs read it, on libyaml's parser: nothing a stranger sends can hurt the process.

Called for manifests in git (reconciler/layout) and for bodies of requests (endpoints/bodies.py). Standard library and
PyYAML only. Doors: `document.first` (a value), `nodes.nodes` (libyaml's trees), `construct` (their values), `scalars`
(what a word means).
"""
