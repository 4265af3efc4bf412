"""What one scenario runs on: nodes, an extender, the recorder and kube-scheduler, all fresh."""

import http.client
import json
import os
import ssl

from lib import objects, shipped
from lib.control_plane import http_ok
from lib.procs import E2EError, free_ports, wait_for
from lib.recorder import Recorder

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
PLANS = "/api/v1/namespaces/default/configmaps?labelSelector=mortise.dev%2Fgang-plan"


class Stage:
    """Use as a context manager. `cluster` is the cluster file of the nodes; the extender is given the same file
    unless `extender_cluster` names another one, or `live` has it watch the API server with its service account, or as
    `kubeconfig` says. kube-scheduler runs with the configuration of config/kube/base; `extender_entry` overrides keys of its
    extender entry, `more_extenders` are further entries after it. `node_metadata` is added to that of every node."""

    tls = True  # between kube-scheduler and the extender, as in the overlay of config/kube; False: as in the base
    recorded = True  # False: nothing stands between the two, and there is no recorder

    def __init__(self, env, cluster, extender_cluster=None, extender_args=(), extender_entry=None, live=False,
                 node_metadata=None, scheduler_args=(), kubeconfig=None, more_extenders=()):
        self.env = env
        self.api = env.plane.api
        self.cluster = cluster
        self.extender_cluster = extender_cluster or cluster
        self._extender_args = list(extender_args)
        self._extender_entry = extender_entry or {}
        self._live = live
        self._node_metadata = node_metadata or {}
        self._scheduler_args = list(scheduler_args)
        self._kubeconfig = kubeconfig
        self._more_extenders = list(more_extenders)
        self._serial = env.next_serial()
        self.recorder = None
        self.extender = None
        self.scheduler = None

    def __enter__(self):
        try:
            with self.env.step("nodes"):
                for row in objects.read_cluster(self.cluster):
                    self.api.post(NODES, objects.node(row, self._node_metadata))
            with self.env.step("extender"):
                self._start_extender()
            with self.env.step("kube-scheduler"):
                self._start_scheduler()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            # An extender that died after its last answer would otherwise go unnoticed.
            for process in (self.extender, self.scheduler):
                if process:
                    process.require_alive()
        for process in (self.scheduler, self.extender):
            if process:
                process.stop()
        if self.recorder:
            self.recorder.close()
        try:
            self._clear()
        except E2EError as error:
            if kind is None:
                raise
            print(f"clean-up: {error}", flush=True)  # the failure that led here is the one to report

    def _clear(self):
        for path in (PODS, NODES):
            self.api.delete(path)
            wait_for(f"{path} to be empty", lambda p=path: not self.api.get(p)["items"])
        self.api.delete(PLANS)  # whose owners are gone; no garbage collector runs here

    def create(self, pod):
        return self.api.post(PODS, pod)["metadata"]["uid"]

    def pod(self, name):
        return self.api.get(f"{PODS}/{name}")

    def patch_node(self, name, changes):
        self.api.patch(f"{NODES}/{name}", changes)

    def wait_bound(self, name, timeout=30.0):
        """The name of the node that kube-scheduler bound the pod to."""
        def bound():
            self.extender.require_alive()
            self.scheduler.require_alive()
            return self.pod(name)["spec"].get("nodeName")
        return wait_for(f"pod {name} to be bound", bound, timeout, interval=0.02)

    def wait_gone(self, name, timeout=30.0):
        """Until there is no such pod."""
        def gone():
            return all(pod["metadata"]["name"] != name for pod in self.api.get(PODS)["items"])
        wait_for(f"pod {name} to be gone", gone, timeout)

    def wait_refused(self, name, timeout=30.0):
        """The PodScheduled=False condition that kube-scheduler wrote."""
        def refused():
            for condition in self.pod(name).get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return condition
            return None
        return wait_for(f"pod {name} to be refused", refused, timeout)

    def spawn_replica(self, port, admin_port, kubeconfig=None):
        """A second extender with the same arguments, but for a kubeconfig of its own if one is given."""
        replica = self._spawn("replica", self._extender_argv(port, admin_port, kubeconfig))
        replica.wait_ready(lambda: "listening on" in replica.log_text(), timeout=30)
        return replica

    def readyz(self, admin_port):
        """Status and text of an extender's /readyz."""
        return self._http(http.client.HTTPConnection("127.0.0.1", admin_port, timeout=10), "GET", "/readyz")

    def ask(self, port, path, document, timeout=10):
        """An extender's answer to a verb."""
        return json.loads(self._http(self.connect(port, timeout), "POST", path, json.dumps(document))[1])

    def connect(self, port, timeout=10):
        """A connection to an extender's verbs, as kube-scheduler's."""
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=self.env.certificates.client())

    @staticmethod
    def _http(connection, method, path, body=None):
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def admin(self, path):
        """What the extender's admin side answers, as text."""
        return self._http(http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=10), "GET", path)[1]

    def metrics(self):
        """The extender's metrics as text."""
        return self.admin("/metrics")

    def metric(self, name):
        """The value of a metric of the extender, labels included in the name."""
        for line in self.metrics().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise E2EError(f"no metric {name}")

    def told_of(self, node):
        """What /v1/nodes/NAME tells."""
        return json.loads(self.admin(f"/v1/nodes/{node}"))

    def _spawn(self, name, argv):
        return self.env.plane.spawn(f"{self._serial:02d}-{self.env.scenario}-{name}", argv)

    def kill_extender(self):
        """kill -9, and a new one on the same ports. kube-scheduler's calls fail meanwhile."""
        self.extender.popen.kill()
        self.extender.popen.wait()
        self.start_extender_again()

    def start_extender_again(self):
        """A new one on the same ports, after the last one has ended."""
        self._spawn_extender()

    def kill_scheduler(self):
        """kill -9, and a new one."""
        self.scheduler.popen.kill()
        self.scheduler.popen.wait()
        self._start_scheduler()

    def _start_extender(self):
        self._extender_port, self.admin_port = free_ports(2)
        self._spawn_extender()
        if not self.recorded:
            return
        self.recorder = Recorder(self._extender_port, self.extender.log[:-len(".log")] + ".exchanges.jsonl",
                                 self.env.certificates if self.tls else None)

    def _extender_argv(self, port, admin_port, kubeconfig=None):
        source = ["--cluster", self.extender_cluster]
        if self._live:
            source = ["--kubeconfig", kubeconfig or self._kubeconfig or self.env.extender_kubeconfig]
        tls = self.env.certificates.extender_arguments() if self.tls else []
        return [self.env.extender_binary, *source, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin_port}",
                *tls, *self._extender_args]

    def _spawn_extender(self):
        self.extender = self._spawn("extender", self._extender_argv(self._extender_port, self.admin_port))
        self.extender.wait_ready(lambda: "listening on" in self.extender.log_text(), timeout=30)
        self.extender.wait_ready(lambda: http_ok(
            http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=5), "/readyz"))

    def scheduler_config(self):
        port = self.recorder.port if self.recorder else self._extender_port
        url, certs = (f"https://127.0.0.1:{port}", self.env.certificates.dir) if self.tls else (f"http://127.0.0.1:{port}", None)
        config = shipped.scheduler_config(self.env.scheduler_kubeconfig, url, certs, self._live, self._extender_entry)
        config["extenders"] += self._more_extenders
        return config

    def _spawn_scheduler(self):
        kubeconfig = self.env.scheduler_kubeconfig
        config = self.scheduler_config()
        path = os.path.join(self.env.plane.dir, f"scheduler-{self._serial:02d}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        self.scheduler_port, = free_ports(1)
        self.scheduler = self._spawn("kube-scheduler", [
            os.path.join(self.env.plane.binaries, "kube-scheduler"), "--config", path, "--v", "2",
            "--bind-address", "127.0.0.1", "--secure-port", str(self.scheduler_port),
            "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig, *self._scheduler_args])

    def _start_scheduler(self):
        self._spawn_scheduler()
        # It makes a certificate of its own for this port, which nobody could check.
        untrusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        untrusted.check_hostname = False
        untrusted.verify_mode = ssl.CERT_NONE
        self.scheduler.wait_ready(lambda: http_ok(
            http.client.HTTPSConnection("127.0.0.1", self.scheduler_port, timeout=5, context=untrusted), "/readyz"))
