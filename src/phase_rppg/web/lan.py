"""Access from other devices of the local network, off unless `phase live --lan` asks for it.

Browsers give a camera to https pages only, so the server makes a certificate of its own for one run. A random
token in the link, then in a cookie, keeps other devices of the network out.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ..errors import MissingPackageError, UsageError, is_installed

VALID_DAYS = 2
_TOKEN_BYTES = 18
_ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation; connecting a datagram socket sends nothing


@dataclass(frozen=True)
class LanAccess:
    """Address, certificate and token of a server in the local network."""

    address: str
    token: str
    context: ssl.SSLContext
    fingerprint: str  # SHA-256 of the certificate, as browsers show it

    def admits(self, token: str | None) -> bool:
        """Whether this is the token; the comparison takes the same time for every wrong one."""
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())


def open_lan(address: str | None = None) -> LanAccess:
    """Make the certificate and the token for one run; nothing is left on the disk."""
    address = address or local_address()
    with tempfile.TemporaryDirectory(prefix="phase-lan-") as name:
        folder = Path(name)
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        _make_certificate(address, key, certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        content = ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii"))
    digest = hashlib.sha256(content).hexdigest().upper()
    fingerprint = ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))
    return LanAccess(address, secrets.token_urlsafe(_TOKEN_BYTES), context, fingerprint)


def local_address() -> str:
    """Return the IPv4 address of this computer in its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError as error:
            raise UsageError("--lan: this computer is in no network; connect it, or omit --lan") from error
        address = str(probe.getsockname()[0])
    if ipaddress.ip_address(address).is_loopback:
        raise UsageError("--lan: this computer is in no network; connect it, or omit --lan")
    return address


def qr_code(link: str) -> str | None:
    """Return the link as a QR code of text lines; None without the package segno."""
    if not is_installed("segno"):
        return None
    import io

    import segno

    text = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(text, border=2, compact=True)
    return text.getvalue()


def _make_certificate(address: str, key: Path, certificate: Path) -> None:
    """Write a private key and a certificate for an address, with the package cryptography or with openssl."""
    key.touch(mode=0o600)
    if is_installed("cryptography"):
        _with_cryptography(address, key, certificate)
    elif (openssl := shutil.which("openssl")) is not None:
        _with_openssl(openssl, address, key, certificate)
    else:
        raise MissingPackageError("cryptography")


def _with_cryptography(address: str, key: Path, certificate: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "phase live")])
    now = datetime.now(timezone.utc)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    signed = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    key.write_bytes(secret.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    certificate.write_bytes(signed.public_bytes(pem))


def _with_openssl(openssl: str, address: str, key: Path, certificate: Path) -> None:
    command = [
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc",
        "-keyout", str(key), "-out", str(certificate), "-days", str(VALID_DAYS), "-subj", "/CN=phase live",
        "-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=critical,CA:FALSE",
    ]  # fmt: skip
    environment = {**os.environ, "OPENSSL_CONF": os.devnull}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f'--lan: openssl made no certificate ({last}); pip install "phase-rppg[lan]"')
