"""Pure decisions: what an object should look like, what a workspace contains, where things run. No input or output."""
