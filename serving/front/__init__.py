"""The HTTP front of a model: files in, JSON out, with limits that hold. `python -m serving.front`."""
