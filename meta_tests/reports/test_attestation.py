"""Signatures: who signed what, with keys as people have them, and that they fit nothing else."""

import json
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from forging import FORGERIES, UNTRACED, change_bundle, rewrite
from poolproof.reports.rows.schema import COLUMNS, Row
from poolproof.reports.rows.store import read_run, write_run
from poolproof.reports.rows.verdicts import Overall
from poolproof.suites.verify.rerun import _comparable, _difference
from shares import a_share

pytest.importorskip("securesystemslib")

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sessions import poolproof

pytestmark = pytest.mark.usefixtures("deriving_once")

KEYS: dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
}


FORMS = {
    "OpenSSH": (PrivateFormat.OpenSSH, Encoding.OpenSSH, PublicFormat.OpenSSH),
    "PEM": (PrivateFormat.PKCS8, Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
}


def make_key(folder: Path, name: str, kind: str = "ed25519", form: str = "OpenSSH") -> None:
    private, (private_format, encoding, public_format) = KEYS[kind](), FORMS[form]
    (folder / name).write_bytes(private.private_bytes(Encoding.PEM, private_format, NoEncryption()))
    (folder / f"{name}.pub").write_bytes(private.public_key().public_bytes(encoding, public_format))


def verified(bundle: Path, key: str = "key.pub") -> Result:
    return poolproof("verify", bundle, "--signer", bundle.with_name(key))


def signed(run: Path, folder: Path) -> Path:
    made = poolproof("package", run, "-o", folder / "bundle.zip", "--sign", folder / "key")
    assert made.exit_code == 0, made.output
    return folder / "bundle.zip"


@pytest.fixture(scope="module")
def signed_once(failing_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    make_key(folder, "key")
    signed(failing_run / "run", folder)
    return folder


@pytest.fixture
def signed_bundle(signed_once: Path, tmp_path: Path) -> Path:
    """A copy of a bundle, beside its attestation and the key that signed it."""
    return Path(shutil.copytree(signed_once, tmp_path / "signed")) / "bundle.zip"


def statement_of(bundle: Path) -> bytes:
    return b64decode(json.loads(Path(f"{bundle}.intoto.json").read_text())["payload"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_that_people_have(run: Path, tmp_path: Path, kind: str, form: str) -> None:
    make_key(tmp_path, "key", kind, form)
    result = verified(signed(run, tmp_path))
    assert result.exit_code == 0, result.output
    assert "signed with the key of key.pub" in result.output


def test_another_ones_key_did_not_sign_nor_a_statement_that_was_changed(signed_bundle: Path) -> None:
    make_key(signed_bundle.parent, "other")
    result = verified(signed_bundle, "other.pub")
    assert result.exit_code == Overall.VIOLATES
    assert "no signature of bundle.zip.intoto.json was made with the key of other.pub" in result.output
    path = Path(f"{signed_bundle}.intoto.json")
    payload = b64encode(statement_of(signed_bundle).replace(b"FAILED", b"PASSED")).decode()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"payload": payload}))
    result = verified(signed_bundle)
    assert (result.exit_code, "no signature" in result.output) == (Overall.VIOLATES, True)


@pytest.mark.parametrize("title", a_share(UNTRACED))
def test_what_nothing_else_tells_the_signature_tells(title: str, run: Path, signed_bundle: Path) -> None:
    FORGERIES[title](run)
    assert poolproof("package", run, "-o", signed_bundle).exit_code == 0
    result = verified(signed_bundle)
    assert (result.exit_code, "it was signed for bundle" in result.output) == (Overall.VIOLATES, True)


def test_the_statement_names_bundle_libraries_and_result(run: Path, signed_bundle: Path) -> None:
    statement = json.loads(statement_of(signed_bundle))
    named = {subject["name"] for subject in statement["subject"]}
    libraries = [name for name in read_run(run)["backends"]["reports_backends:Mixed"] if name.startswith("library ")]
    assert any("libtorch_cpu" in name for name in libraries)
    assert named == {"bundle", *(f"reports_backends:Mixed {name}" for name in libraries)}
    assert statement["predicate"]["result"] == "FAILED"
    (account,) = (entry["annotations"] for entry in statement["predicate"]["configuration"] if "annotations" in entry)
    assert (account["aspects"], account["dtypes"]) == (["layouts", "values"], ["float32", "float64"])
    assert account["waivers"][0]["scope"]["backend"] == "reports_backends:Mixed"
    assert account["backends"]["reports_backends:Mixed"]["models"]
    assert account["cases"]["asked"] < account["cases"]["whole plan"]
    assert verified(signed_bundle).output.splitlines()[-2].startswith("vouched for: signed with the key of key.pub")
    unread = poolproof("verify", signed_bundle).output.splitlines()[-2]
    assert unread.endswith("nobody signed this; attestation not checked without --signer: bundle.zip.intoto.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"payload": 1, "signatures": []}', b"\xff", b"[" * 100_000])
def test_an_attestation_that_is_none(signed_bundle: Path, content: bytes) -> None:
    Path(f"{signed_bundle}.intoto.json").write_bytes(content)
    result = verified(signed_bundle)
    assert result.exit_code == Overall.COULD_NOT_RUN
    assert len(result.output.strip().splitlines()) == 1


def test_a_key_that_cannot_sign(run: Path, tmp_path: Path) -> None:
    make_key(tmp_path, "key")
    for key, complaint in (("nowhere", "cannot be read"), ("key.pub", "is no private key")):
        result = poolproof("package", run, "-o", tmp_path / "bundle.zip", "--sign", tmp_path / key)
        assert (result.exit_code, complaint in result.output) == (Overall.COULD_NOT_RUN, True)


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_sample_of_it_is_judged_again_and_finds_rows_that_were_made_up(run: Path, tmp_path: Path) -> None:
    poolproof("package", run, "-o", tmp_path / "bundle.zip")
    named = ("--backend", "reports_backends:Mixed")
    again = poolproof("rerun", tmp_path / "bundle.zip", *named, "--sample", 20, "--seed", 1)
    assert again.exit_code == 0, again.output
    counts = "20 cases judged again, 0 with another verdict, 0 with other bits; no plain call (sample --seed 1)"
    assert counts in again.output
    said = r"the run in it: reports_backends:Mixed \(library \w{12}, given --pythonpath .+\); plan smoke, seed 0; on "
    assert re.search(said, again.output)
    FORGERIES["everything forged: rows healed, evidence removed"](run)
    poolproof("package", run, "-o", tmp_path / "bundle.zip")
    again = poolproof("rerun", tmp_path / "bundle.zip", *named, "--sample", 64)
    assert again.exit_code == Overall.VIOLATES, again.output
    assert "conforms in the bundle, violates (interval" in again.output
    assert "poolproof replay --backend reports_backends:Mixed" in again.output


@pytest.mark.thorough
def test_a_rerun_tells_who_is_judged_and_what_follows_from_equal_bits(run: Path, tmp_path: Path) -> None:
    bundle, named = tmp_path / "bundle.zip", ("--backend", "reports_backends:Mixed", "--sample", 30)
    poolproof("package", run, "-o", bundle)
    again = poolproof("rerun", bundle, *named)
    assert (again.exit_code, "AGREES (" in again.output) == (0, True), again.output
    record = read_run(run)
    (environment,) = record["backends"].values()
    library = next(name for name in environment if name.startswith("library libtorch_cpu"))
    environment[library] = "sha256:" + "0" * 64 + environment[library][71:]
    write_run(run, record)
    poolproof("package", run, "-o", bundle)
    again = poolproof("rerun", bundle, *named)
    assert (again.exit_code, "AGREES, WITH ANOTHER LIBRARY" in again.output) == (0, True), again.output
    assert "another library than reports_backends:Mixed had: libtorch_cpu.so is 000000000000" in again.output
    rewrite(run, lambda rows: [row | ({"mere": 0.5} if row["mere"] is not None else {}) for row in rows])
    poolproof("package", run, "-o", bundle)
    again = poolproof("rerun", bundle, *named)
    assert (again.exit_code, "of the same bits" in again.output) == (Overall.VIOLATES, True), again.output


def test_what_another_backend_declares_or_may_refuse_is_no_disagreement() -> None:
    before: Row = dict.fromkeys(column.name for column in COLUMNS) | {
        "backend": "a",
        "product": "",
        "verdict": "conforms",
    }
    before |= {"output_digest": "00", "model": "native"}
    other = before | {"backend": "b", "model": "acc32"}
    assert not _difference(before, other)
    assert _difference(before, other | {"backend": "a"})
    refused = before | {"verdict": "refused as documented"}
    several = before | {"n": 8, "n_single_valued": 6, "k_bound": [2.3e-35], "k_error": [2.3e-35]}
    assert not _difference(several, several | {"output_digest": "01", "k_bound": [0.0], "k_error": [0.0]})
    for there, here in ((before, refused | {"product": "A2"}), (refused | {"product": "A2"}, before)):
        assert _comparable(there, here)["verdict"] == "not supported"
    assert _difference(before, _comparable(before, refused))
    fails = other | {"verdict": "violates"}
    assert _comparable(refused, fails) is fails


def test_a_rerun_runs_no_code_that_a_bundle_names_and_takes_no_damaged_one(bundle: Path) -> None:
    again = poolproof("rerun", bundle)
    assert again.exit_code == Overall.COULD_NOT_RUN
    assert "reports_backends:Mixed, which the bundle names, is not installed" in again.output
    change_bundle(bundle, "verdict.json", lambda content: content + b" ", hashed=False)
    again = poolproof("rerun", bundle, "--backend", "reports_backends:Mixed")
    assert (again.exit_code, "is damaged: changed: verdict.json" in again.output) == (Overall.COULD_NOT_RUN, True)
