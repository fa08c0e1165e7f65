"""The lock files are complete, hold digests and no addresses, and agree with the declared requirements."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from phase_rppg import limits
from phase_rppg.web.server import MAX_CONNECTIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
packaging = pytest.importorskip("packaging.requirements")

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements" / "test.txt"
WEB_LOCK = ROOT / "web" / "package-lock.json"
FOLDERS = ("", "phase-rppg", "app")  # of the npm workspace
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_PINNED = {"torch"}  # see scripts/lock
LARGE_EXTRAS = {"parquet", "ray"}  # the suite does not install them


def pins() -> list[tuple[packaging.Requirement, list[str]]]:
    """Return every entry of the lock with its digests."""
    text = re.sub(r"^#.*\n", "", LOCK.read_text(encoding="utf-8"), flags=re.M)
    entries = re.split(r"\n(?=\S)", text.strip())
    return [
        (packaging.Requirement(entry.split(" \\\n")[0]), re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry))
        for entry in entries
    ]


def wanted() -> list[packaging.Requirement]:
    optional = PROJECT["optional-dependencies"].items()
    extras = [text for name, extra in optional if name not in LARGE_EXTRAS for text in extra]
    found = [packaging.Requirement(text) for text in (*PROJECT["dependencies"], *extras)]
    return [one for one in found if one.name not in NOT_PINNED | {PROJECT["name"]}]


def test_every_pin_is_exact_and_has_digests() -> None:
    assert len(pins()) > 50
    for requirement, digests in pins():
        assert re.fullmatch(r"==[\w.+]+", str(requirement.specifier)), requirement
        assert digests, requirement


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_every_requirement_of_the_project_is_pinned(requirement: packaging.Requirement) -> None:
    """After a change of pyproject.toml run scripts/lock."""
    versions = [
        str(pin.specifier).removeprefix("==") for pin, _ in pins() if pin.name == requirement.name.lower()
    ]
    assert versions, "run scripts/lock"
    assert all(requirement.specifier.contains(version) for version in versions)


def test_one_version_of_each_package_applies_to_this_python() -> None:
    names = [pin.name for pin, _ in pins() if pin.marker is None or pin.marker.evaluate()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("file", [LOCK, WEB_LOCK, ROOT / "web" / ".npmrc"], ids=lambda file: file.name)
def test_no_lock_holds_the_address_of_an_index(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    allowed = re.sub(r'"funding": (\{[^}]*\}|"[^"]*"|\[[^]]*\])', "", text)  # where to sponsor the authors
    allowed = re.sub(r'"resolved": "(phase-rppg|app)",\s*"link": true', "", allowed)  # our folders
    assert not re.search(r"https?://|index-url|find-links|file:|\bregistry *=|\"resolved\"", allowed)


def test_the_lock_of_the_page_is_complete() -> None:
    """`npm ci` refuses a lock without the optional builds for other systems."""
    packages = json.loads(WEB_LOCK.read_text(encoding="utf-8"))["packages"]
    for folder in FOLDERS:
        declared = json.loads((ROOT / "web" / folder / "package.json").read_text(encoding="utf-8"))
        for kind in ("dependencies", "devDependencies"):
            assert packages[folder].get(kind) == declared.get(kind)
    for path, package in packages.items():
        inside = path in FOLDERS or package.get("link")
        assert inside or re.match(r"sha512-", package["integrity"]), path
        for name in {**package.get("dependencies", {}), **package.get("optionalDependencies", {})}:
            nested = f"{path}/node_modules/{name}" if path else ""
            assert f"node_modules/{name}" in packages or nested in packages, f"{path} needs {name}"


def test_the_scripts_install_from_the_locks() -> None:
    install = (ROOT / "scripts" / "install").read_text(encoding="utf-8")
    assert 'pip("--require-hashes", "--requirement", "requirements/test.txt")' in install
    assert '"ci"' in (ROOT / "scripts" / "build-web").read_text()


def bill_of_materials() -> bytes:
    """Return the output of scripts/sbom with the interpreter of the tests."""
    command = [sys.executable, str(ROOT / "scripts" / "sbom")]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_the_bill_of_materials_has_the_structure_of_cyclonedx() -> None:
    document = json.loads(bill_of_materials())
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    assert document["metadata"]["component"]["name"] == PROJECT["name"]
    lengths = {"SHA-256": 64, "SHA-512": 128}
    for part in document["components"]:
        assert part["type"] in ("library", "machine-learning-model")
        assert part["name"]
        assert part["licenses"][0]["expression"]
        for digest in part.get("hashes", ()):
            assert re.fullmatch(rf"[0-9a-f]{{{lengths[digest['alg']]}}}", digest["content"])
    refs = [part["bom-ref"] for part in document["components"]]
    assert len(refs) == len(set(refs))
    known = {*refs, document["metadata"]["component"]["bom-ref"]}
    for row in document["dependencies"]:
        assert {row["ref"], *row["dependsOn"]} <= known
    assert not re.search(r"https?://|file:/", json.dumps(document))


def test_the_bill_of_materials_lists_what_is_required_and_what_is_inside() -> None:
    parts = {part["name"]: part for part in json.loads(bill_of_materials())["components"]}
    required = [packaging.Requirement(text) for text in PROJECT["dependencies"]]
    assert {r.name for r in required if r.marker is None or r.marker.evaluate()} <= set(parts)
    for folder in ("phase-rppg", "app"):
        declared = json.loads((ROOT / "web" / folder / "package.json").read_text(encoding="utf-8"))
        for name, version in {**declared["dependencies"], **declared.get("devDependencies", {})}.items():
            assert name == "phase-rppg" or parts[name]["version"] == version
    weights = [*(ROOT / "src").rglob("*.onnx"), *(ROOT / "src").rglob("*.safetensors")]
    assert len(weights) >= 3
    for file in weights:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert parts[file.name]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert bill_of_materials() == bill_of_materials()


def test_every_declared_package_has_a_licence() -> None:
    rows = set(re.findall(r"^\| `([^`]+)` \| [^|]+ \|", (ROOT / "THIRD_PARTY.md").read_text("utf-8"), re.M))
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k != "dev"}
    texts = [*PROJECT["dependencies"], *(text for extra in extras.values() for text in extra)]
    assert {packaging.Requirement(text).name for text in texts} <= rows


def test_the_security_page_lists_the_limits_of_the_code() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| (.+) \|$", text, re.M)
    assert [(name, float(value.replace(",", "")), what) for name, value, what in listed] == limits.table()
    assert f"at most {MAX_CONNECTIONS} connections" in text
