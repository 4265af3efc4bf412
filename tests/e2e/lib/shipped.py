"""What config/kube ships, as the test bed uses it: the scheduler's configuration, the certificates, the manifests."""

import os
import ssl
import subprocess

from lib.procs import E2EError

try:
    import yaml
except ImportError as error:
    raise SystemExit("run: needs the Python module yaml (Debian: python3-yaml)") from error

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
KUBE = os.path.join(ROOT, "config", "kube")
SCHEDULER_CONFIG = os.path.join(KUBE, "base", "scheduler-config.yaml")
SYSTEM = "mortise-system"
EXTENDER = "mortise-extender"
SCHEDULER = "mortise-scheduler"
LEASE = ("--lease", f"{SYSTEM}/{EXTENDER}")


def load_scheduler_config():
    with open(SCHEDULER_CONFIG, encoding="utf-8") as f:
        return yaml.safe_load(f)


def placed_scheduler_config(kubeconfig, url, certs=None):
    """The shipped configuration with where the API server and the extender are; with a directory of certificates over TLS, as
    in the overlay."""
    config = load_scheduler_config()
    config["clientConnection"]["kubeconfig"] = kubeconfig
    entry = config["extenders"][0]
    entry["urlPrefix"] = url
    if certs:
        files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
        entry["tlsConfig"] = {key: os.path.join(certs, name) for key, name in files.items()}
    return config


def scheduler_config(kubeconfig, url, certs, live, overrides):
    """The same with the name of the scheduler replaced, as pods of the scenarios name none. There is one kube-scheduler at
    a time, which a Lease would only make wait after a restart. An extender that is not `live` writes nothing to the API
    server, so kube-scheduler binds. `overrides` are a scenario's: keys of the extender's entry, None to leave one out."""
    config = placed_scheduler_config(kubeconfig, url, certs)
    config["leaderElection"]["leaderElect"] = False
    config["profiles"][0]["schedulerName"] = "default-scheduler"
    entry = config["extenders"][0]
    if not live:
        del entry["bindVerb"], entry["preemptVerb"]
    entry.update(overrides)
    config["extenders"][0] = {key: value for key, value in entry.items() if value is not None}
    return config


class Certificates:
    """Made by config/kube/make-certs, as operators make theirs."""

    def __init__(self, directory):
        self.dir = directory
        made = subprocess.run([os.path.join(KUBE, "make-certs"), directory], capture_output=True, text=True, timeout=60,
                              check=False)
        if made.returncode != 0:
            raise E2EError(f"make-certs: {made.stderr.strip()}")

    def path(self, name):
        return os.path.join(self.dir, name)

    def extender_arguments(self):
        return ["--tls-cert", self.path("tls.crt"), "--tls-key", self.path("tls.key"), "--tls-client-ca", self.path("ca.crt")]

    def client(self):
        """For connections to the extender, as kube-scheduler."""
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        context.load_cert_chain(self.path("client.crt"), self.path("client.key"))
        return context

    def server(self):
        """For connections of kube-scheduler, as the extender."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.path("ca.crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.path("tls.crt"), self.path("tls.key"))
        return context
