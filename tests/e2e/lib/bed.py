"""The test bed of a run: its directory, the control plane, and the order in which all of it is taken down."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from lib import shipped
from lib.control_plane import ControlPlane
from lib.procs import E2EError, tail
from lib.shipped import ROOT

E2E = os.path.join(ROOT, "tests", "e2e")


def find_binary(name):
    """MORTISE_BIN or MORTISE_EXTENDER_BIN when set, else the usual build directories."""
    variable = name.upper().replace("-", "_") + "_BIN"
    named = os.environ.get(variable)
    places = [named] if named else [os.path.join(ROOT, "build", "release", name), os.path.join(ROOT, "build", name)]
    for path in places:
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.abspath(path)
    raise E2EError(f"no {name}: looked for {', '.join(places)}; build it first or set {variable}")


def control_plane(release=None):
    """The directory of the control plane's programs of a Kubernetes release, built if need be."""
    build = [os.path.join(E2E, "build")] + (["--kube", release] if release else [])
    subprocess.run(build, check=True, stdout=sys.stderr)
    return subprocess.run(build + ["--print-dir"], check=True, capture_output=True, text=True).stdout.strip()


class Bed:
    """What a scenario is given. `scenario` is the name of the one that runs; `long` asks for its long form, if it has one."""

    def __init__(self, binaries, extender_binary, long=False):
        self.extender_binary = extender_binary
        self.scenario = "setup"
        self.long = long
        self.dir = tempfile.mkdtemp(prefix="mortise-e2e-")
        self.plane = ControlPlane(binaries, self.dir)
        self.certificates = None
        self.extender_kubeconfig = None
        self.scheduler_kubeconfig = None
        self._serial = 0

    def start(self):
        with self.step("control plane"):
            self.plane.start()
            self._admin_kubeconfig = self.plane.kubeconfig("kubectl", "e2e-admin", "system:masters")
        with self.step("accounts and certificates"):
            self.kubectl("apply", "-k", os.path.join(shipped.KUBE, "rbac"))
            self.kubectl("apply", "-f", os.path.join(shipped.KUBE, "base", "rights.yaml"))
            self.extender_kubeconfig = self.plane.token_kubeconfig(shipped.EXTENDER, shipped.SYSTEM)
            self.scheduler_kubeconfig = self.plane.token_kubeconfig(shipped.SCHEDULER, shipped.SYSTEM)
            self.certificates = shipped.Certificates(os.path.join(self.dir, "certificates"))

    def kubectl(self, *arguments):
        """What kubectl prints, as an administrator."""
        program = os.path.join(self.plane.binaries, "kubectl")
        done = subprocess.run([program, "--kubeconfig", self._admin_kubeconfig, "--cache-dir",
                               os.path.join(self.dir, "kubectl-cache"), *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise E2EError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def close(self, keep):
        self.plane.stop()
        if keep:
            print(f"kept {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def next_serial(self):
        self._serial += 1
        return self._serial

    @contextlib.contextmanager
    def step(self, name):
        started = time.monotonic()
        yield
        print(f"    {self.scenario}: {name} {time.monotonic() - started:.1f} s", flush=True)

    def print_tails(self):
        """The ends of the logs that belong to the scenario that failed."""
        for name in sorted(os.listdir(self.plane.log_dir)):
            own = f"-{self.scenario}-" in name
            if own or name in ("etcd.log", "kube-apiserver.log"):
                lines = 3 if name.endswith(".jsonl") else 40 if own else 10
                print(f"--- {name}, last {lines} lines\n{tail(os.path.join(self.plane.log_dir, name), lines)}", flush=True)
