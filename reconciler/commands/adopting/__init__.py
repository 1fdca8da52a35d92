"""`treeplane init --from DIR`: a fleet that is made of a directory which is none, written elsewhere.

`adoption` is where it begins. What stands in the directory was written by anybody: it is read once and without
following a link (`lookedat`), what it says is data alone, and nothing is written but below an empty or new directory
(`writing`). Each file is either taken, byte for byte, or listed with the reason (`inquiry`).
"""
