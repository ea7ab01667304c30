"""An image's reference changes with everything its content depends on, and with nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.images import build as image_build
from tools.images.recipes import CONTAINERFILES, IMAGES, OPTIONAL_IMAGES, PREFIX, SERVING, Recipe, apps, recipes, static, triton
from tools.paths import REPO


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A toolchain of tiny files."""
    for name in ("pause", "coredns", "pilot-discovery", "pilot-agent", "gpu-simulator", "bootstrap.json"):
        (tmp_path / name).write_text(name)
    return tmp_path


def refs(programs: Path) -> dict[str, str]:
    names = (*IMAGES, *OPTIONAL_IMAGES)
    return {recipe.name: recipe.ref for recipe in recipes(programs.joinpath, lambda: programs / "bootstrap.json", names)}


def test_every_image_has_a_recipe_under_its_own_name(programs):
    assert set(refs(programs)) == {*IMAGES, *OPTIONAL_IMAGES}
    for name, ref in refs(programs).items():
        repository, _, tag = ref.rpartition(":")
        assert repository == f"{PREFIX}/{name}"
        assert len(tag) == 12


@pytest.mark.parametrize(
    ("program", "image"), [("pause", "pause"), ("pilot-agent", "proxyv2"), ("bootstrap.json", "proxyv2"), ("coredns", "coredns")]
)
def test_a_changed_program_changes_its_image_and_no_other(programs, program, image):
    before = refs(programs)
    (programs / program).write_text("changed")
    after = refs(programs)
    assert {name for name in before if before[name] != after[name]} == {image}


def test_a_changed_base_changes_what_stands_on_it():
    assert triton("registry.example/triton@sha256:aa", "3.12").ref != triton("registry.example/triton@sha256:bb", "3.12").ref


def test_backends_in_python_and_every_models_code_decide_on_the_cpu_image_and_backends_on_no_other(programs):
    [cpu] = recipes(programs.joinpath, lambda: programs / "bootstrap.json", ["triton"])
    backend, code = SERVING / "backends" / "onnxruntime" / "model.py", {SERVING / "models" / name / "model.py" for name in ("magika", "ocr_text")}
    assert {backend, *code} <= set(cpu.inputs)
    nvidia = set(triton("registry.example/triton@sha256:aa", "3.12").inputs)
    assert code <= nvidia
    assert backend not in nvidia


def test_what_stages_the_repository_decides_on_the_serving_image():
    """All modules of `serving` itself that staging loads, but for the client of object stores: what it brings is held to a hash."""
    said = "import sys, serving.repository.stage as _; print(*(name for name in sys.modules if name.startswith('serving.') and name.count('.') == 1))"
    loaded = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, cwd=REPO, timeout=60).stdout.split()
    files = {SERVING / f"{name.removeprefix('serving.')}.py" for name in loaded} - {SERVING / "s3.py"}
    assert {file.name for file in files if file.is_file()} <= {
        file.name for file in triton("localhost/base:0", "3.11").inputs if file.parent == SERVING
    }


def test_another_python_makes_another_image():
    assert triton("registry.example/triton@sha256:aa", "3.11").ref != triton("registry.example/triton@sha256:aa", "3.12").ref


def test_a_change_of_the_debian_packages_reaches_the_serving_image(programs, monkeypatch):
    before = refs(programs)
    monkeypatch.setattr("tools.images.debian.PACKAGES", ("python3-minimal",))
    after = refs(programs)
    assert {name for name in before if before[name] != after[name]} == {"apps", "proxyv2", "triton"}


def test_only_the_programs_of_the_wanted_images_are_asked_for(programs):
    asked = []

    def binary(name: str) -> Path:
        asked.append(name)
        found: Path = programs / name
        return found

    recipes(binary, lambda: programs / "bootstrap.json", ["pause", "coredns"])
    assert asked == ["pause", "coredns"]


def test_a_stack_that_asks_for_nothing_gets_no_optional_image(programs):
    assert "apps" not in {recipe.name for recipe in recipes(programs.joinpath, lambda: programs / "bootstrap.json")}


def test_the_programs_image_holds_what_serving_imports_and_no_build_of_another_image(tmp_path, monkeypatch):
    for name in ("requirements", "build-requirements"):
        (tmp_path / name).mkdir()
    (tmp_path / "build-requirements" / "pip-1-py3-none-any.whl").touch()
    monkeypatch.setattr("tools.images.recipes.ensure_wheels", lambda file: tmp_path / file.stem)
    context = tmp_path / "context"
    context.mkdir()
    apps("localhost/base:0").prepare(context)
    held = {str(path.relative_to(context / "app")) for path in (context / "app").rglob("*") if path.is_file()}
    assert {"serving/contract.py", "components/__init__.py", "components/errors.py", "components/core/spec.py"} <= held
    assert not [name for name in held if name.startswith(("serving/image/", "serving/apps/", "components/traffic", "components/inference"))]


def test_a_module_that_moves_makes_another_programs_image(monkeypatch, tmp_path):
    for place in ("front/a.py", "batch/a.py"):
        (tmp_path / "serving" / place).parent.mkdir(parents=True)
        (tmp_path / "serving" / place).write_text("")
    monkeypatch.setattr("tools.images.recipes.REPO", tmp_path)
    refs = set()
    for place in ("front/a.py", "batch/a.py"):
        monkeypatch.setattr("tools.images.recipes._application_files", lambda place=place: [tmp_path / "serving" / place])
        refs.add(apps("localhost/base:0").ref)
    assert len(refs) == 2


def test_a_static_image_gets_its_program_and_nothing_else(programs, tmp_path):
    context = tmp_path / "context"
    context.mkdir()
    static("pause", "pause", programs / "pause").prepare(context)
    assert [path.name for path in context.iterdir()] == ["pause"]


def test_images_run_as_a_numbered_user_unless_they_need_the_kubelets_folder():
    for path in CONTAINERFILES.glob("*.Containerfile"):
        if path.stem.split(".")[0] in {"debian", "triton-base", "gpu-simulator"}:
            continue
        user = [line for line in path.read_text().splitlines() if line.startswith("USER ")]
        assert user, path
        assert user[-1].split()[1].split(":")[0].isdigit(), path


class FakeBuildah:
    """Buildah that notes what it is asked; `fail_at` breaks the build of one image."""

    def __init__(self, fail_at: str = "") -> None:
        self.fail_at, self.built = fail_at, list[str]()

    def has(self, ref):
        return ref in self.built

    def build(self, ref, containerfile, context, base):
        if self.fail_at and self.fail_at in ref:
            raise RuntimeError("killed")
        self.built.append(ref)

    def export(self, ref, archive):
        archive.write_text(ref)


@pytest.fixture
def fake_images(programs, tmp_path, monkeypatch):
    """`ensure_images` on fakes: no program is run, archives are text."""
    monkeypatch.setattr(image_build, "images_dir", lambda: tmp_path / "images")
    monkeypatch.setattr(image_build, "check_programs", lambda: None)
    nothing = Recipe("base", CONTAINERFILES / "debian.Containerfile", lambda context: None)
    made = [
        Recipe("first", CONTAINERFILES / "pause.Containerfile", lambda context: None, base=nothing),
        Recipe("second", CONTAINERFILES / "coredns.Containerfile", lambda context: None, base=nothing),
    ]
    monkeypatch.setattr(image_build, "recipes", lambda *_: made)

    def ensure(buildah):
        monkeypatch.setattr(image_build, "Buildah", lambda store: buildah)
        return image_build.ensure_images(programs.joinpath)

    return ensure


def test_a_base_is_built_once_and_before_what_stands_on_it(fake_images):
    buildah = FakeBuildah()
    images = fake_images(buildah)
    assert [ref.split("/")[-1].split(":")[0] for ref in buildah.built] == ["base", "first", "second"]
    assert all(image.path.read_text() == image.ref for image in images.values())


def test_nothing_is_done_when_every_archive_is_there(fake_images):
    fake_images(FakeBuildah())
    idle = FakeBuildah()
    fake_images(idle)
    assert idle.built == []


def test_a_killed_run_keeps_what_is_whole_and_the_next_builds_the_rest(fake_images, tmp_path):
    # What a killed run leaves of its build context.
    (tmp_path / "images" / "context" / "rootfs").mkdir(parents=True)
    with pytest.raises(RuntimeError):
        fake_images(FakeBuildah(fail_at="second"))
    assert [path.suffix for path in (tmp_path / "images").iterdir() if path.name.startswith("first")] == [".tar"]
    assert not list((tmp_path / "images").glob("context*"))
    again = FakeBuildah()
    fake_images(again)
    assert [ref.split("/")[-1].split(":")[0] for ref in again.built] == ["base", "second"]
