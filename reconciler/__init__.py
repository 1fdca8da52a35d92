"""Everything between git, the store and the clusters: load, decide, render, apply, publish."""
