"""The server's log: one line an event, of all its processes, in one place.

A process begins with `begin` (records), and from then on what it logs is a line (lines) that goes to its parent through
a pipe, with the id of the request that it is about (requestids). The parent, `treeplane up`, is the only one that
writes (outlets), to its standard error or to files of bounded size (rotated). Nobody waits for the log: what finds no
room is counted, and the count is told.
"""
