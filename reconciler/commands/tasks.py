"""What the processes of a server are called in metrics and in the log, besides the API workers `api-1`, ….

Given by `up`, which starts them, and by each that begins.
"""

UP = "up"
RECONCILER = "reconciler"
REST = "controllers"
"""What a large fleet's second process does: controllers, the status branch, syncing."""
VIEWER = "commits"
