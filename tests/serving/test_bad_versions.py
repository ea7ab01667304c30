"""A version that cannot be served: its server lives and is not ready for it, and whatever else it serves goes on.

That the pods of the version before serve on is the rollout's part, which the end-to-end tests prove.

Of memory this is shown, and true, where the kernel ends single processes: on cgroup version 1, and on version 2 with the kubelet's `singleProcessOOMKill`
(kubernetes/kubernetes#126096). By default the kubelet sets memory.oom.group on version 2 (kubernetes/kubernetes#117793): a greedy model then takes its
container with it, which the kubelet starts again. Neither pod becomes ready.
"""

import os
from collections.abc import Iterator

import httpx
import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serving.contract import LIVE_PATH, model_ready_path
from tests.serving.repository import infer, outputs, states, tensor, write_model
from tools.cluster.cgroups import limited_memory
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

# Enough for the server and its Python processes; the greedy model would take everything.
CONTAINER_MIB = 512
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())]) for request in requests]
"""
RAISING = f"""{ECHO}
    def initialize(self, args):
        raise ValueError("the weights are for another card")
"""
GREEDY = f"""{ECHO}
    def initialize(self, args):
        self.taken = []
        while True:
            self.taken.append(b"x" * 2**24)
"""
ENDING = f"""{ECHO}
    def initialize(self, args):
        import os
        os._exit(3)
"""
# Asks for another input than its config has.
STRANGER = ECHO.replace('(request, "x")', '(request, "z")')
BAD = {
    "raising": (RAISING, "the weights are for another card"),
    "greedy": (GREEDY, "Stub process"),
    "ending": (ENDING, "Stub process"),
    "no-code": ("this is no Python", "SyntaxError"),
    "no-class": ("import json", "TritonPythonModel"),
}


def config(name: str, **more: object) -> pb.ModelConfig:
    side = {"data_type": pb.TYPE_FP32, "dims": [1]}
    return pb.ModelConfig(name=name, max_batch_size=1, input=[pb.ModelInput(name="x", **side)], output=[pb.ModelOutput(name="y", **side)], **more)


def python_config(name: str) -> str:
    return text_format.MessageToString(config(name, backend="python", instance_group=[pb.ModelInstanceGroup(count=1, kind="KIND_CPU")]))


def ensemble_config(name: str, step: str, **more: object) -> str:
    steps = [pb.ModelEnsembling.Step(model_name=step, model_version=1, input_map={"x": "x"}, output_map={"y": "y"})]
    return text_format.MessageToString(config(name, platform="ensemble", ensemble_scheduling=pb.ModelEnsembling(step=steps), **more))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """A good model, bad ones and an ensemble over a bad one, as a Deployment starts them, in the memory of a container."""
    folder = tmp_path_factory.mktemp("bad")
    repository = folder / "models"
    write_model(repository, "good", python_config("good"), {"model.py": ECHO})
    for name, (code, _) in BAD.items():
        write_model(repository, name, python_config(name), {"model.py": code})
    write_model(repository, "over-bad", ensemble_config("over-bad", "raising"), {})
    write_model(repository, "stranger", python_config("stranger"), {"model.py": STRANGER})
    write_model(repository, "over-stranger", ensemble_config("over-stranger", "stranger"), {})
    sample = pb.ModelWarmup(name="zeros", batch_size=1, inputs={"x": pb.ModelWarmup.Input(data_type=pb.TYPE_FP32, dims=[1], zero_data=True)})
    write_model(repository, "warm", ensemble_config("warm", "good", model_warmup=[sample]), {})
    loaded = [f"--load-model={name}" for name in ("good", *BAD, "over-bad", "stranger", "over-stranger", "warm")]
    arguments = ["--model-control-mode=explicit", "--exit-on-error=false", "--strict-readiness=true", *loaded]
    with (
        limited_memory(f"serving{os.getpid() % 10**6}", CONTAINER_MIB) as group,
        TritonProcess(repository=repository, arguments=arguments, group=group, log=folder / "triton.log") as triton,
    ):
        triton.wait_ready(path=model_ready_path("good", 1))
        yield triton


@pytest.mark.parametrize(("name", "reason"), [(name, reason) for name, (_, reason) in BAD.items()])
def test_a_bad_version_is_not_ready_and_says_why(server: TritonProcess, name: str, reason: str) -> None:
    assert httpx.get(f"{server.http}{model_ready_path(name, 1)}").status_code == httpx.codes.BAD_REQUEST
    assert server.answers(LIVE_PATH)
    state, said = states(server)[name]
    assert state != "READY"
    assert reason in said


def test_an_ensemble_over_a_bad_version_is_not_ready_and_names_its_step(server: TritonProcess) -> None:
    assert not server.answers(model_ready_path("over-bad", 1))
    assert "ensemble 'over-bad' depends on 'raising'" in server.log.read_text()


def test_the_good_model_beside_them_is_ready_and_answers(server: TritonProcess) -> None:
    assert server.answers(model_ready_path("good", 1))
    assert outputs(infer(server, "good", tensor("x", "FP32", [1, 1], [2.5]))) == {"y": [2.5]}


def test_triton_warms_no_ensemble_up_so_that_a_step_of_another_signature_shows_at_the_first_request(server: TritonProcess) -> None:
    """Why a stack refuses `warmup` of an ensemble, and what is left to the check of the image's build."""
    assert server.answers(model_ready_path("over-stranger", 1))
    answer = infer(server, "over-stranger", tensor("x", "FP32", [1, 1], [1.0]))
    assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert "model_warmup can not be specified for ensemble 'warm'" in server.log.read_text()
