"""Signed statements about bundles: in-toto attestations of a test result, in DSSE envelopes.

A statement names its signer and the files: the bundle, and every judged library. The formats are in-toto (Statement v1,
predicate https://in-toto.io/attestation/test-result/v0.1) and DSSE, so other tools can read them. Keys are Ed25519,
ECDSA or RSA, as OpenSSH or PEM files. This needs the extra ``attest``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from poolproof.reports.bundle.account import account
from poolproof.reports.figures.digest import Digest
from poolproof.reports.figures.tables import records
from poolproof.reports.rows.environment import library_contents
from poolproof.reports.rows.io_errors import check_replaceable
from poolproof.reports.rows.records import read_record
from poolproof.reports.rows.verdicts import BadInput, Overall

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"

_RESULTS = {Overall.CONFORMS: "PASSED", Overall.INCOMPLETE: "WARNED", Overall.VIOLATES: "FAILED"}


class AttestationError(BadInput):
    """A key, an envelope or a statement that cannot be used; the text says which and why."""


def attestation_path(bundle: Path) -> Path:
    """Return the path of a bundle's attestation: next to it, with its name."""
    return bundle.with_name(bundle.name + ".intoto.json")


def sign(bundle: Path, digest: Digest, key: Path) -> Path:
    """Write the attestation of a run's bundle; raise `AttestationError` if the key cannot sign."""
    path = attestation_path(bundle)
    check_replaceable(path)
    dsse = _library().dsse
    payload = json.dumps(_statement(bundle, digest), sort_keys=True, separators=(",", ":")).encode()
    envelope = dsse.Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(_key(key, signs=True))
    path.write_text(json.dumps(envelope.to_dict(), indent=2) + "\n", encoding="utf-8")
    return path


def problems(bundle: Path, digest: Digest, attestation: Path, public_key: Path) -> Iterator[str]:
    """Yield differences between an attestation and its bundle and run; raise `AttestationError` if unreadable."""
    statement = _signed_statement(attestation, public_key)
    if statement is None:
        yield f"no signature of {attestation.name} was made with the key of {public_key.name}"
        return
    signed, current = _digests(statement), _digests(_statement(bundle, digest))
    for name, value in current.items():
        if signed.get(name) != value:
            yield f"it was signed for {name} {signed.get(name, 'of no content')[:12]}, and here it is {value[:12]}"
    for name in signed.keys() - current.keys():
        yield f"it was signed for {name}, which the run does not have"
    if statement.get("predicate") != _predicate(digest):
        yield "it was signed for a result that the rows do not give"


def _statement(bundle: Path, digest: Digest) -> dict[str, Any]:
    with bundle.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    subjects = {"bundle": content}
    for backend, environment in digest.run["backends"].items():
        subjects |= {f"{backend} {name}": value for name, value in library_contents(environment).items()}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": value}} for name, value in subjects.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": _predicate(digest),
    }


def _predicate(digest: Digest) -> dict[str, Any]:
    """Return the result and its configuration: poolproof, plan, and the account of what was judged and left out."""
    run = digest.run
    suite = {"name": f"poolproof {run['suite']['version']}", "digest": {"sha256": run["suite"]["content_hash"]}}
    part = f"; {digest.conclusion.narrowed}" if digest.conclusion.narrowed else ""
    plan = {"name": f"plan {run['plan']}, seed {run['seed']}{part}", "annotations": account(digest)}
    counts = digest.supported_counts.reset_index()
    failed = records(counts[counts["violates"] > 0])
    violated = sorted({f"{row['backend']} {row['operator']} {row['dtype']}".strip() for row in failed})
    return {"result": _RESULTS[digest.conclusion.overall], "configuration": [suite, plan], "failedTests": violated}


def _digests(statement: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    except (KeyError, TypeError) as error:
        raise AttestationError(f"the attestation's subjects cannot be read: {error!r}") from error


def _signed_statement(attestation: Path, public_key: Path) -> dict[str, Any] | None:
    library = _library()
    record = read_record(attestation, AttestationError, f"{attestation} is no attestation", ["payload", "signatures"])
    try:
        envelope = library.dsse.Envelope.from_dict(record)
        envelope.verify([_key(public_key)], 1)
        if envelope.payload_type != PAYLOAD_TYPE:
            raise AttestationError(f"{attestation} holds {envelope.payload_type!r}, not {PAYLOAD_TYPE}")
        statement = json.loads(envelope.payload)
    except library.exceptions.VerificationError:
        return None
    except (library.exceptions.Error, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise AttestationError(f"{attestation} is no envelope: {error}") from error
    if not isinstance(statement, dict) or statement.get("predicateType") != PREDICATE_TYPE:
        raise AttestationError(f"{attestation} attests no test result")
    return statement


def _key(path: Path, *, signs: bool = False) -> Any:
    """Return securesystemslib's key for a public key, or its signer for a private one."""
    from cryptography.hazmat.primitives import serialization as keys

    if path.exists() and not path.is_file():
        raise AttestationError(f"{path} is no key file")
    try:
        content = path.read_bytes()
        if signs:
            load_private = keys.load_ssh_private_key if b"OPENSSH" in content else keys.load_pem_private_key
            return _library().signer.CryptoSigner(load_private(content, password=None))
        load = keys.load_pem_public_key if content.startswith(b"-----") else keys.load_ssh_public_key
        return _library().signer.SSlibKey.from_crypto(load(content))
    except OSError as error:
        raise AttestationError(f"key {path} cannot be read: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        kind = "private key that can sign without a pass phrase" if signs else "public key"
        raise AttestationError(f"{path} is no {kind}: {error}") from error


def _library() -> Any:
    """Import securesystemslib with its parts; `AttestationError` says how to install it."""
    try:
        import cryptography  # noqa: F401
        import securesystemslib.dsse
        import securesystemslib.exceptions
        import securesystemslib.signer
    except ImportError as error:
        raise AttestationError("signatures need more: pip install 'poolproof[attest]'") from error
    return securesystemslib
