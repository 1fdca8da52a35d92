"""The commands as they are typed: options, exit codes, and a call. Found by name in reconciler.__main__, which imports
none before it is asked for: most of a short command's time would be what others need.
"""
