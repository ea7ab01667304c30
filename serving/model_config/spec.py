"""Everything a stack says about how Triton runs a model; the keys stand directly under models.<name>."""

from components.core.spec import Spec
from serving.model_config.batching import BatchingSpec
from serving.model_config.instances import InstancesSpec


class ServingSpec(Spec):
    """What is rendered to config.pbtxt, together with the model's own manifest."""

    batching: BatchingSpec = BatchingSpec()
    instances: InstancesSpec = InstancesSpec()
