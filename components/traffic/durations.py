"""Durations in Istio's objects."""


def duration(seconds: float) -> str:
    """Seconds as Istio's objects spell them, to the millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
