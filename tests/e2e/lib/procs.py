"""Child processes, ports and waiting. Every child dies with this process, whatever ends it."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

_libc = ctypes.CDLL(None)  # loaded before any fork: nothing but the call itself may happen in the child
_PR_SET_PDEATHSIG = 1


class E2EError(Exception):
    """A step of the test bed or a check of a scenario fell short; the text says which."""


def wait_for(what, probe, timeout=60.0, interval=0.05):
    """Calls probe() until it returns something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise E2EError(f"timed out after {timeout:g} s waiting for {what}")
        time.sleep(interval)


def free_ports(count):
    """Distinct loopback ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def need_tool(name):
    path = shutil.which(name)
    if not path:
        raise E2EError(f"needs {name} on PATH")
    return path


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def tail(path, lines, width=2000):
    """The last lines of a file, each cut at width."""
    return "\n".join(line[:width] for line in read_text(path).splitlines()[-lines:])


class Process:
    """One server in its own process group, its output in a log file."""

    def __init__(self, name, argv, log_dir):
        self.name = name
        self.log = os.path.join(log_dir, name + ".log")
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))

    def alive(self):
        return self.popen.poll() is None

    def require_alive(self):
        if not self.alive():
            raise E2EError(f"{self.name} ended by itself with status {self.popen.returncode}")

    def wait_ready(self, probe, timeout=60.0):
        def ready():
            self.require_alive()
            return probe()
        return wait_for(f"{self.name} to be ready", ready, timeout)

    def log_text(self):
        return read_text(self.log)

    def stop(self, grace=3.0):
        # kube-apiserver waits up to a minute for open watches on SIGTERM; nothing here is worth that.
        for sig, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
            if not self.alive():
                break
            self._signal_group(sig)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        self._signal_group(signal.SIGKILL)  # what the server itself may have started

    def _signal_group(self, sig):
        try:
            os.killpg(self.popen.pid, sig)
        except (ProcessLookupError, PermissionError):
            pass
