"""etcd and kube-apiserver on loopback: started once for a run, shared by its scenarios."""

import http.client
import json
import os

from lib.api import Api
from lib.pki import Pki
from lib.procs import E2EError, Process, free_ports, wait_for


class ControlPlane:
    def __init__(self, binaries, directory):
        self.binaries = binaries
        self.dir = directory
        self.log_dir = os.path.join(directory, "logs")
        os.makedirs(self.log_dir)
        self.processes = []
        self.api = None

    def start(self):
        self.pki = Pki(os.path.join(self.dir, "pki"))
        self._etcd_port, peer_port, self.api_port = free_ports(3)
        self._start_etcd(self._etcd_port, peer_port)
        self._start_apiserver()
        # kube-apiserver makes these namespaces itself, some time after it reports ready.
        wait_for("the first namespaces", lambda: {"default", "kube-system"} <= set(self.namespaces()))

    def namespaces(self):
        return [n["metadata"]["name"] for n in self.api.get("/api/v1/namespaces")["items"]]

    def version(self):
        return self.api.get("/version")["gitVersion"]

    def kubeconfig(self, name, user, group=None):
        """Writes a kubeconfig for that user and returns its path."""
        cert, key = self.pki.client(name, user, group)
        return self.write_kubeconfig(name, {"client-certificate": cert, "client-key": key})

    def token_kubeconfig(self, account, namespace):
        """Writes a kubeconfig for a service account, with a token of an hour in a file of its own; returns its path."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request)
        token_file = os.path.join(self.dir, account + ".token")
        with open(token_file, "w", encoding="utf-8") as f:
            f.write(answer["status"]["token"])
        return self.write_kubeconfig(account, {"tokenFile": token_file})

    def write_kubeconfig(self, name, user, port=None):
        """Of the API server or a proxy before it; `user` holds the credentials as a kubeconfig names them."""
        path = os.path.join(self.dir, name + ".kubeconfig")
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": f"https://127.0.0.1:{port or self.api_port}",
                                                     "certificate-authority": self.pki.ca}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
        }
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)  # JSON is YAML
        return path

    def spawn(self, name, argv):
        process = Process(name, argv, self.log_dir)
        self.processes.append(process)
        return process

    def restart_apiserver(self, *more):
        """Kills it, open watches and all, and starts it anew on the same port, with more arguments. `api` is a new one,
        too."""
        self.apiserver.stop(grace=0)
        self._start_apiserver(*more)

    def compact(self):
        """etcd forgets every version but the last; returns that one."""
        def ask(path, body):
            connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=30)
            try:
                connection.request("POST", path, json.dumps(body))
                answer = connection.getresponse()
                text = answer.read().decode()
            finally:
                connection.close()
            if answer.status != 200:
                raise E2EError(f"etcd answers {path} with {answer.status} {text}")
            return json.loads(text)
        revision = ask("/v3/maintenance/status", {})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def stop(self):
        for process in reversed(self.processes):
            process.stop()

    def _start_etcd(self, port, peer_port):
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self.etcd = etcd = self.spawn("etcd", [
            os.path.join(self.binaries, "etcd"), "--name", "e2e", "--data-dir", os.path.join(self.dir, "etcd"),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"e2e={peer}",
            "--unsafe-no-fsync", "--log-level", "warn"])  # the data does not outlive the run
        etcd.wait_ready(lambda: http_ok(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "/health"))

    def _start_apiserver(self, *more):
        self.apiserver = self.spawn("kube-apiserver", [
            os.path.join(self.binaries, "kube-apiserver"),
            "--etcd-servers", f"http://127.0.0.1:{self._etcd_port}",
            "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", str(self.api_port),
            # A loopback address is refused as an endpoint of the kubernetes service, which nothing here uses.
            "--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24",
            "--tls-cert-file", self.pki.path("apiserver.crt"), "--tls-private-key-file", self.pki.path("apiserver.key"),
            "--client-ca-file", self.pki.ca, "--authorization-mode", "RBAC",
            # kube-scheduler fills its log with errors as long as no authority for front proxies is published.
            "--requestheader-client-ca-file", self.pki.ca, "--requestheader-allowed-names", "front-proxy",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", self.pki.path("service-account.crt"),
            "--service-account-signing-key-file", self.pki.path("service-account.key"),
            # Both wait for controllers that are not run: one makes the service accounts, the other removes the
            # not-ready taint that admission would put on every new node.
            "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition", *more])
        cert, key = self.pki.client("admin", "e2e-admin", "system:masters")
        self.api = Api(self.api_port, self.pki.ca, cert, key)
        self.apiserver.wait_ready(self.api.ready, timeout=120)


def http_ok(connection, path):
    """Whether a GET of path is answered with 200; closes the connection."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
