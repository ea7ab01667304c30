"""Weights of a route: checked before anything downstream could guess.

Istio takes any sum, treats a single destination as 100 whatever it says, and drops a destination of weight 0 from the route
(istio/istio pilot/pkg/networking/core/route/route.go), so a slip here would be served as it stands.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from components.core.model_identity import version_label
from components.errors import ManifestError
from components.traffic.spec import CanarySpec

TOTAL_PERCENT = 100
HINT = f"give every version a whole number from 0 to {TOTAL_PERCENT}; together they must be {TOTAL_PERCENT}"


def check_weights(weights: Mapping[str, object], declared: AbstractSet[str]) -> dict[str, int]:
    """Return the weights if they say for exactly the `declared` subsets who gets what, in percent; else raise ManifestError."""
    if missing := sorted(declared - weights.keys()):
        raise ManifestError(f"weights {dict(weights)}: {', '.join(missing)} is declared but has no weight", hint=HINT)
    if unknown := sorted(weights.keys() - declared):
        raise ManifestError(f"weights {dict(weights)}: {', '.join(unknown)} is no declared subset", hint=f"declared: {', '.join(sorted(declared))}")
    checked = {subset: _whole_percent(subset, weight) for subset, weight in weights.items()}
    if (total := sum(checked.values())) != TOTAL_PERCENT:
        raise ManifestError(f"weights {checked} sum to {total}, not {TOTAL_PERCENT}", hint=HINT)
    return checked


def split(stable_version: int, canary: CanarySpec | None) -> dict[str, int]:
    """Percent per subset, the stable version first; it gets what the canary does not, and a 0 is written out."""
    if canary is None:
        return {version_label(stable_version): TOTAL_PERCENT}
    if canary.version == stable_version:
        raise ManifestError(f"canary version {canary.version} is the stable version too", hint="name another version, or remove the canary")
    weights = {version_label(stable_version): TOTAL_PERCENT - canary.weight, version_label(canary.version): canary.weight}
    return check_weights(weights, weights.keys())


def _whole_percent(subset: str, weight: object) -> int:
    # bool is an int to Python, so `true` would pass as 1.
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise ManifestError(f"weight of {subset} is {weight!r}, not a whole number", hint=HINT)
    if not 0 <= weight <= TOTAL_PERCENT:
        raise ManifestError(f"weight of {subset} is {weight}, outside 0 to {TOTAL_PERCENT}", hint=HINT)
    return weight
