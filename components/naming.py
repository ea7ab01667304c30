"""Names: type tokens and Kubernetes names."""

import hashlib
import re

DNS_LABEL_MAX = 63
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def type_token(area: str, class_name: str) -> str:
    """Pulumi type token of a component."""
    return f"inference:{area}:{class_name}"


def k8s_name(*parts: str) -> str:
    """Join parts by '-'; a result over 63 characters is cut and ends in a hash of the whole, so that it stays unique."""
    name = "-".join(parts)
    if len(name) <= DNS_LABEL_MAX:
        return name
    suffix = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: DNS_LABEL_MAX - 9].rstrip('-')}-{suffix}"


def content_hash(text: str) -> str:
    """Ten hex digits of the text's SHA-256, for names that must change with the content."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]
