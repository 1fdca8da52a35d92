"""The repository layout as data: its specification, JSON Schemas, the files of `treeplane init`, samples. No code."""
