"""What happened, as files on a branch: the store's statuses into commits, and back into a store at recovery."""
