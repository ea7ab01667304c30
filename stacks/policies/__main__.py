"""The policy pack: registers the rules and nothing else."""

from pulumi_policy import EnforcementLevel, PolicyPack
from rules_traffic import POLICIES as TRAFFIC
from rules_workloads import POLICIES as WORKLOADS

PolicyPack(name="inference-platform", enforcement_level=EnforcementLevel.MANDATORY, policies=[*TRAFFIC, *WORKLOADS])
