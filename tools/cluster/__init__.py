"""A real local Kubernetes, as processes of one supervisor: `python -m tools.cluster`, or these functions from code."""

from tools.cluster.images import NodeImages, load_images
from tools.cluster.lifecycle import check, delete, start, stop
from tools.cluster.spec import Cluster, ClusterSpec
from tools.cluster.status import ClusterStatus, status

__all__ = ["Cluster", "ClusterSpec", "ClusterStatus", "NodeImages", "check", "delete", "load_images", "start", "status", "stop"]
