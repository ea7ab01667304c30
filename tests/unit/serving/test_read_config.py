"""From a config.pbtxt back to the project's words: nothing is lost in silence, and no text makes it fall over."""

import json
from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tritonclient.grpc import model_config_pb2 as pb

from components.errors import ManifestError, PlatformError
from serving.model_config import InstancesSpec, ServingSpec, SignatureSpec, config_message, config_text, parse_config, read_config
from serving.model_config.__main__ import main
from serving.model_config.compare import with_defaults
from tests.unit.serving.serving_values import SERVING, facts_for

EXAMPLES = sorted((Path(__file__).parents[2] / "data" / "triton-model-repository").glob("*/config.pbtxt"))
CPU_CORES = 8
BASE = 'name: "m" backend: "python" input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 } '
BATCHED = f"{BASE} max_batch_size: 8 "
# What the project has no words for: how a network's own axes differ from those of a request, and labels of classes.
RESHAPED = {"densenet_onnx": ["format", "reshape", "label_filename"], "inception_onnx": ["format", "reshape", "label_filename"]}


def serving_of(values):
    return ServingSpec.model_validate_json(json.dumps(values))


def resolved(serving):
    """With the counts that the number of cores decides, which is what a config holds."""
    groups = [group.model_copy(update={"count": group.copies(CPU_CORES)}) for group in serving.instances.groups]
    plain = InstancesSpec.model_construct(
        **{name: getattr(groups[0], name) for name in ("count", "kind", "gpus", "profiles")}, further=tuple(groups[1:])
    )
    further = tuple(type(group).model_construct(**vars(group)) for group in groups[1:])
    return serving.model_copy(update={"instances": plain.model_copy(update={"further": further})})


def said(text):
    """What becomes of a text: the model's words, or the way out of its fault. Anything else that is raised is a crash."""
    try:
        return read_config(text)
    except PlatformError as error:
        return error.hint


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_published_example_goes_to_the_same_message_and_back(path):
    message = parse_config(path.read_text())
    assert parse_config(config_text(message)) == message


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_published_example_is_said_in_specs_and_what_is_left_is_named(path):
    read = read_config(path.read_text())
    again = with_defaults(config_message(read.facts, read.serving, cpu_cores=1))
    left = RESHAPED.get(path.parent.name, [])
    assert sorted({name for name in ("format", "reshape", "label_filename") for entry in read.unexpressed if name in entry}) == sorted(left)
    original = with_defaults(parse_config(path.read_text()))
    for tensor in (*original.input, *original.output):
        for field in left:
            if field in tensor.DESCRIPTOR.fields_by_name:
                tensor.ClearField(field)
    assert again == original


def test_the_examples_are_all_there():
    assert [path.parent.name for path in EXAMPLES] == [
        "densenet_onnx",
        "inception_onnx",
        "simple",
        "simple_dyna_sequence",
        "simple_identity",
        "simple_int8",
        "simple_sequence",
        "simple_string",
    ]


QUEUES = {"maxSize": 5, "timeoutMicroseconds": 2000, "timeoutAction": "delay", "allowTimeoutOverride": True}
WHOLE = [
    {"batching": {"maxBatchSize": 8, "preferredSizes": [2, 8], "maxQueueDelayMicroseconds": 9, "preserveOrdering": True, "queue": {"maxSize": 1}}},
    {"batching": {"maxBatchSize": 8, "queue": QUEUES, "priorities": {"levels": 3, "default": 2, "queues": [{"level": 1, **QUEUES}]}}},
    {"batching": {"maxBatchSize": 8, "dynamic": False}, "responseCache": True},
    {"instances": {"count": 2, "kind": "gpu", "gpus": [0, 1], "profiles": [1], "further": [{"count": 4, "kind": "gpu", "gpus": [2]}, {"count": 1}]}},
    {"sequence": {"strategy": "direct", "maxIdleMicroseconds": 7, "maxQueueDelayMicroseconds": 8, "minimumSlotUtilizationPercent": 33}},
    {
        "batching": {"maxBatchSize": 8},
        "sequence": {
            "strategy": "oldest",
            "maxIdleMicroseconds": 7,
            "maxQueueDelayMicroseconds": 8,
            "maxCandidateSequences": 9,
            "preferredSizes": [4],
            "preserveOrdering": True,
        },
    },
    {"rateLimiter": {"priority": 3, "resources": [{"name": "R1", "count": 2, "scope": "global"}, {"name": "R2", "count": 1}]}},
    {"warmup": [{"batchSize": 1, "count": 3}]},
    {"warmup": [{"inputs": [{"name": "text", "dims": [1, 1], "data": "random"}, {"name": "image", "dims": [1, 3, 4]}]}]},
    {"optimization": {"graphLevel": -1, "accelerator": "tensorrt", "precision": "fp16", "workspaceMib": 64, "cudaGraphs": True}},
    {"optimization": {"accelerator": "openvino", "inputPinnedMemory": False, "outputPinnedMemory": True, "gatherKernelBufferThreshold": 3}},
    {"optimization": {"graphLevel": 2, "accelerator": "auto-mixed-precision"}},
]


@pytest.mark.parametrize("values", WHOLE, ids="-".join)
def test_every_key_is_read_back(values):
    serving = serving_of(values)
    # Each value differs from its default, so a key that is lost is seen.
    assert serving.model_dump(by_alias=True, exclude_defaults=True).keys() == values.keys()
    read = read_config(config_text(config_message(facts_for(serving, 4), serving, cpu_cores=CPU_CORES)))
    assert read.unexpressed == ()
    assert read.facts == facts_for(serving, 4)
    assert read.serving.model_dump() == resolved(serving).model_dump()


@given(SERVING, st.integers(0, 4))
@settings(max_examples=100)
def test_whatever_a_spec_says_is_read_back_from_its_config(values, controls):
    try:
        serving = serving_of(values)
    except ValidationError:
        assume(False)
    facts = facts_for(serving, controls)
    assume(all({tensor.name for tensor in sample.inputs} in ({"text", "image"}, set()) for sample in serving.warmup))
    assume(len(facts.signature.inputs) == 1 or all(sample.inputs for sample in serving.warmup))
    read = read_config(config_text(config_message(facts, serving, cpu_cores=CPU_CORES)))
    assert read.unexpressed == ()
    assert read.facts == facts
    assert read.serving.model_dump() == resolved(serving).model_dump()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2000) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
@settings(max_examples=100)
def test_any_values_make_a_config_or_are_refused(data):
    """Keys that exist with any value, and values of one key under another."""
    keys = ["batching", "instances", "sequence", "responseCache", "rateLimiter", "warmup", "optimization"]
    values = data.draw(st.dictionaries(st.sampled_from(keys), JSON | SERVING, max_size=3) | SERVING)
    try:
        serving = serving_of(values)
    except ValidationError:
        return
    if all(sample.inputs == () for sample in serving.warmup):
        assert parse_config(config_text(config_message(facts_for(serving, 2), serving, cpu_cores=1))).name == "model"


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text):
    assert said(text)


FIELDS = st.sampled_from([*pb.ModelConfig.DESCRIPTOR.fields_by_name, "levels", "key", "value", "kind", "dims", "direct", "oldest"])
VALUES = st.sampled_from(
    ["1", "-1", "0.5", '"x"', '"\\377"', "TYPE_FP32", "KIND_GPU", "true", "99999999999999999999", "nan", "[1, 2]", "{}", "[{}, {}]", "{", "}"]
)


@given(st.lists(st.tuples(FIELDS, st.sampled_from([": ", " ", " { "]), VALUES), max_size=6), st.sampled_from(["", BASE, BATCHED]))
@settings(max_examples=200)
def test_text_that_is_nearly_a_config_is_read_or_refused_in_words(parts, start):
    assert said(start + "\n".join(f"{field}{joint}{value}" for field, joint, value in parts))


@given(st.data())
@settings(max_examples=100)
def test_a_damaged_example_is_read_or_refused_in_words(data):
    text = data.draw(st.sampled_from([path.read_text() for path in EXAMPLES]))
    start = data.draw(st.integers(0, len(text)))
    assert said(text[:start] + data.draw(st.text(max_size=3)) + text[start + data.draw(st.integers(0, 20)) :])


def test_a_syntax_error_is_told_with_its_line():
    with pytest.raises(ManifestError, match=r"2:1"):
        parse_config('name: "m"\nnonsense: 1')


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("model_operations { op_library_filename: 'a.so' }", "model_operations.op_library_filename[0]: 'a.so'"),
        ("batch_input { kind: BATCH_ELEMENT_COUNT source_input: 'x' }", "batch_input[0]:"),
        ("metric_tags { key: 'a' value: 'b' }", "metric_tags[a]: 'b'"),
        ("instance_group { count: 1 kind: KIND_MODEL }", "instance_group[0].kind: 3"),
        ("instance_group { host_policy: 'h' }", "instance_group[0].host_policy: 'h'"),
        (
            "instance_group { rate_limiter { priority: 1 } } instance_group { rate_limiter { priority: 2 } }",
            "instance_group[1].rate_limiter.priority: 2",
        ),
        ("optimization { eager_batching: true }", "optimization.eager_batching: True"),
        ("version_policy { all {} }", "version_policy.all: "),
        ("default_model_filename: 'other.py'", "default_model_filename: 'other.py'"),
        ("dynamic_batching {}", "dynamic_batching: "),
        ("model_warmup { batch_size: 1 inputs { key: 'x' value { data_type: TYPE_FP32 dims: 1 input_data_file: 'f' } } }", "input_data_file: 'f'"),
    ],
)
def test_what_specs_cannot_say_is_named_by_field_and_value(more, named):
    assert any(named in entry for entry in read_config(BASE + more).unexpressed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{BATCHED} dynamic_batching {{ preferred_batch_size: 16 }}", "above maxBatchSize 8"),
        (f"{BATCHED} dynamic_batching {{ priority_levels: 2 default_priority_level: 3 }}", "level 3 does not exist"),
        (f"{BATCHED} sequence_batching {{}} response_cache {{ enable: true }}", "cannot be used with sequence"),
        (f"{BASE} max_batch_size: -1", "greater than or equal to 0"),
        ('name: "m" backend: "python"', "inputs"),
        ('name: "m" backend: "fil"', "backend 'fil'"),
        (f"{BATCHED} input {{ name: 'z' data_type: TYPE_FP32 }}", "dims"),
        (f"{BATCHED} sequence_batching {{ control_input {{ name: 'x' control {{ kind: CONTROL_SEQUENCE_END }} }} }}", "datatype"),
        (f"{BASE} instance_group {{ kind: 99 }}", r"instance_group\.kind: 99 stands for nothing"),
        (f"{BATCHED} input {{ name: 'z' data_type: 99 dims: 1 }}", r"input\.data_type: 99 stands for nothing"),
        (
            f"{BATCHED} dynamic_batching {{ priority_queue_policy {{ key: 1 value {{ timeout_action: 9 }} }} }}",
            "timeout_action: 9 stands for nothing",
        ),
        (
            f"{BASE} model_warmup {{ batch_size: 1 inputs {{ key: 'other' value {{ dims: 1 zero_data: true }} }} }}",
            r"model_warmup\.0: inputs \['other'\] are not those",
        ),
        (f"{BATCHED} input {{ name: 'z' data_type: TYPE_FP32 dims: 1 }} model_warmup {{ batch_size: 1 }}", r"model_warmup\.0: inputs \[\]"),
    ],
)
def test_a_config_that_triton_would_refuse_is_refused(text, reason):
    with pytest.raises(ManifestError, match=reason):
        read_config(text)


ENSEMBLE = """
name: "e" platform: "ensemble" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling { step { model_name: "m" model_version: VERSION input_map { key: "a" value: "x" } output_map { key: "b" value: "y" } } }
"""


@pytest.mark.parametrize(("version", "left"), [("2", ()), ("-1", ("ensemble_scheduling.step[0].model_version: -1",))])
def test_an_ensemble_is_read_with_its_steps(version, left):
    read = read_config(ENSEMBLE.replace("VERSION", version))
    assert read.format == "ensemble"
    assert [(step.model, step.inputs, step.outputs) for step in read.facts.steps] == [("m", {"a": "x"}, {"b": "y"})]
    assert read.unexpressed == left


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_command_prints_keys_that_a_stack_file_takes(path, capsys):
    assert main([str(path)]) == 0
    model, stack = (yaml.safe_load(part) or {} for part in capsys.readouterr().out.split("# stack file, under models.<name>"))
    read = read_config(path.read_text())
    assert serving_of(stack) == read.serving
    assert SignatureSpec.model_validate_json(json.dumps(model["signature"])) == read.facts.signature
    assert model["format"] == read.format


def test_the_command_names_what_has_no_key(capsys):
    main([str(next(path for path in EXAMPLES if path.parent.name == "densenet_onnx"))])
    assert "#   output[0].label_filename: 'densenet_labels.txt'" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"\xff\xfe", b"nonsense: 1", None])
def test_the_command_says_why_a_file_is_no_config(tmp_path, capsys, content):
    path = tmp_path / "config.pbtxt"
    if content is not None:
        path.write_bytes(content)
    assert main([str(path)]) == 1
    assert "  -> " in capsys.readouterr().err


def test_a_check_sample_is_read_back_as_one():
    read = read_config(
        BASE.replace("TYPE_FP32", "TYPE_STRING")
        + "model_warmup { batch_size: 1 inputs { key: 'x' value { data_type: TYPE_STRING dims: 1 input_data_file: 'check' } } }"
    )
    assert [sample.inputs for sample in read.serving.warmup] == [()]
    assert read.unexpressed == ()


def test_the_text_does_not_depend_on_the_order_in_which_maps_were_filled():
    one, two = pb.ModelConfig(), pb.ModelConfig()
    for message, keys in ((one, "abc"), (two, "cba")):
        for key in keys:
            message.parameters[key].string_value = key
    assert config_text(one) == config_text(two) == text_format.MessageToString(one)
