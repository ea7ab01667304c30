"""Values of serving keys as a stack file holds them, and the models they are about, for hypothesis."""

from typing import Any

from hypothesis import strategies as st

from serving.model_config import ModelFacts, ServingSpec
from serving.model_config.backends import NATIVE
from serving.model_manifest import ControlSpec, SignatureSpec, TensorSpec

BATCH = 16
SMALL = st.integers(1, 3)
SIZES = st.lists(st.integers(1, BATCH), max_size=3, unique=True).map(sorted)
DELAY = st.integers(0, 1000)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the keys, each with one of its values."""
    return st.fixed_dictionaries({}, optional=fields)


QUEUE = some(
    maxSize=st.integers(1, 1000),
    timeoutMicroseconds=st.integers(1001, 10**9),
    timeoutAction=st.sampled_from(["reject", "delay"]),
    allowTimeoutOverride=st.booleans(),
)
BATCHING = some(
    maxBatchSize=st.sampled_from([0, BATCH, BATCH, BATCH]),
    dynamic=st.sampled_from([True, True, True, False]),
    preferredSizes=SIZES,
    maxQueueDelayMicroseconds=DELAY,
    preserveOrdering=st.booleans(),
    queue=QUEUE,
    priorities=st.fixed_dictionaries(
        {"levels": SMALL},
        optional={"default": SMALL, "queues": st.lists(st.builds(dict.__or__, st.fixed_dictionaries({"level": SMALL}), QUEUE), max_size=2)},
    ),
)
GROUP = some(
    count=st.integers(1, 4),
    kind=st.sampled_from(["cpu", "gpu", "gpu"]),
    gpus=st.lists(st.integers(0, 3), max_size=2, unique=True),
    profiles=st.lists(st.integers(0, 3), max_size=2, unique=True),
)
INSTANCES = st.builds(lambda first, further: {**first, "further": further}, GROUP, st.lists(GROUP, max_size=2))
COMMON = {"maxIdleMicroseconds": st.integers(1, 10**7), "maxQueueDelayMicroseconds": DELAY}
SEQUENCE = st.one_of(
    st.fixed_dictionaries({"strategy": st.just("direct")}, optional={**COMMON, "minimumSlotUtilizationPercent": st.integers(0, 100)}),
    st.fixed_dictionaries(
        {"strategy": st.just("oldest"), "maxCandidateSequences": SMALL},
        optional={**COMMON, "preferredSizes": SIZES, "preserveOrdering": st.booleans()},
    ),
)
RESOURCE = st.fixed_dictionaries(
    {"name": st.sampled_from(["R1", "R2", "r1"]), "count": SMALL}, optional={"scope": st.sampled_from(["device", "global"])}
)
LIMITER = some(priority=st.integers(0, 5), resources=st.lists(RESOURCE, max_size=2))
WARMUP = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "batchSize": st.integers(1, BATCH),
            "count": SMALL,
            "inputs": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from(["text", "image"]), "dims": st.lists(st.integers(1, 9), min_size=1, max_size=2)}),
                max_size=2,
            ),
        },
    ),
    max_size=2,
)
OPTIMIZATION = some(
    graphLevel=st.sampled_from([-1, 1, 2]),
    accelerator=st.sampled_from(["tensorrt", "openvino", "auto-mixed-precision"]),
    precision=st.sampled_from(["fp16", "fp32"]),
    workspaceMib=st.integers(1, 4096),
    cudaGraphs=st.booleans(),
    inputPinnedMemory=st.booleans(),
    outputPinnedMemory=st.booleans(),
    gatherKernelBufferThreshold=st.integers(1, 100),
)
SERVING = some(
    batching=BATCHING,
    instances=INSTANCES,
    sequence=SEQUENCE,
    responseCache=st.booleans(),
    rateLimiter=LIMITER,
    warmup=WARMUP,
    optimization=OPTIMIZATION,
)
CONTROLS = (
    ControlSpec(name="START", kind="start", datatype="INT32"),
    ControlSpec(name="END", kind="end", datatype="FP32", values=(1, 0)),
    ControlSpec(name="READY", kind="ready", datatype="BOOL"),
    ControlSpec(name="CORRID", kind="corrid", datatype="BYTES"),
)


def facts_for(serving: ServingSpec, controls: int) -> ModelFacts:
    """A model on which the serving keys make sense, with so many control inputs where it has sequences."""
    text = TensorSpec(name="text", datatype="BYTES", dims=(-1, 1))
    image = TensorSpec(name="image", datatype="FP32", dims=(-1, 3, 4))
    plain = all(not sample.inputs for sample in serving.warmup)
    signature = SignatureSpec(inputs=(text,) if plain else (text, image), outputs=(image,), controls=CONTROLS[:controls] if serving.sequence else ())
    return ModelFacts(name="model", backend=NATIVE["onnx"], versions=(3,), signature=signature, parameters={"a": "b", "": "ü\n"})
