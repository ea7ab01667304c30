"""Traffic: how requests reach a model and how they are split between its versions."""
