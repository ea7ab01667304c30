"""Batch: Jobs that ask a model about every item of a directory or prefix."""
