"""Certificates for one run, made with the openssl program and thrown away with the run's directory."""

import os
import subprocess

from lib.procs import E2EError, need_tool

# Explicit extensions: openssl's own default would mark every certificate as an authority, and strict verifiers
# (Python 3.13, Go) want the key usages.
_CONFIG = """\
[req]
distinguished_name = dn
prompt = no
[dn]
CN = replaced by -subj
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class Pki:
    def __init__(self, directory):
        self.dir = directory
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._openssl = need_tool("openssl")
        with open(self.path("openssl.cnf"), "w", encoding="utf-8") as f:
            f.write(_CONFIG)
        self._certificate("ca", "authority", "/CN=mortise-e2e")
        self._certificate("apiserver", "server", "/CN=kube-apiserver", signed=True)
        # kube-apiserver reads the public half of the signing key from a certificate as well as from a bare key.
        self._certificate("service-account", "client", "/CN=service-accounts", signed=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    @property
    def ca(self):
        return self.path("ca.crt")

    def client(self, name, user, group=None):
        """A client certificate: its CN is the user and its O the group that the API server sees."""
        subject = (f"/O={group}" if group else "") + f"/CN={user}"
        self._certificate(name, "client", subject, signed=True)
        return self.path(name + ".crt"), self.path(name + ".key")

    def _certificate(self, name, extensions, subject, signed=False):
        signer = ["-CA", self.ca, "-CAkey", self.path("ca.key")] if signed else []
        self._run("req", "-x509", "-config", self.path("openssl.cnf"), "-extensions", extensions, "-subj", subject,
                  "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *signer,
                  "-keyout", self.path(name + ".key"), "-out", self.path(name + ".crt"))

    def _run(self, *args):
        done = subprocess.run([self._openssl, *args], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise E2EError(f"openssl {args[0]} failed (version 3.0 or newer is needed): {done.stderr.strip()}")
