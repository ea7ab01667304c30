"""Kubernetes objects that no typed class of the SDK covers, as children of a component."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.helm.v4 import Chart, RepositoryOptsArgs

from components.core.chart import ChartRef


def custom_resource(name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions) -> CustomResource:
    """One object of a custom kind, from its whole manifest."""
    return CustomResource(
        name, api_version=manifest["apiVersion"], kind=manifest["kind"], metadata=manifest["metadata"], spec=manifest["spec"], opts=opts
    )


def helm_chart(name: str, ref: ChartRef, namespace: str, values: Mapping[str, Any], opts: pulumi.ResourceOptions) -> Chart:
    """The chart's objects, rendered by the provider (no Helm release is kept) and awaited; `name` is also the release name the templates see."""
    return Chart(
        name,
        name=name,
        chart=ref.chart,
        version=ref.version,
        repository_opts=RepositoryOptsArgs(repo=ref.repository) if ref.repository else None,
        namespace=namespace,
        values=values,
        opts=opts,
    )
