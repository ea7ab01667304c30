"""Asks a model about every file of a directory or every object of a prefix: `python -m serving.batch run|check|merge`."""
