"""scheduler/kube/client against the real API server, through the developer tool kube_probe."""

import json
import os
import signal
import subprocess

from lib import objects
from lib.bed import find_binary
from lib.procs import E2EError, wait_for

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODE = {"sn": "node-0", "cpu_milli": 64000, "memory_mib": 262144, "gpu": 8, "model": ""}


def check(condition, text):
    if not condition:
        raise E2EError(text)


class Follower:
    """A running `kube_probe follow`, and the lines it has printed."""

    def __init__(self, env, kubeconfig):
        self._env = env
        self.process = env.plane.spawn(f"{env.next_serial():02d}-{env.scenario}-follow", [
            find_binary("kube_probe"), "--kubeconfig", kubeconfig, "follow", "--page-size", "2"])

    def lines(self, resource, event=None):
        # The last line may be half written.
        complete = self.process.log_text().rpartition("\n")[0].splitlines()
        seen = [json.loads(line) for line in complete if line.startswith("{")]
        return [line for line in seen if line["resource"] == resource and event in (None, line["event"])]

    def wait(self, what, probe):
        def seen():
            self.process.require_alive()
            return probe()
        return wait_for(f"kube_probe to see {what}", seen, 30, 0.02)

    def lists(self, resource):
        return len(self.lines(resource, "replace"))

    def objects(self, resource):
        """The names of the objects that there are, by all that was told."""
        names = set()
        for line in self.lines(resource):
            if line["event"] == "replace":
                names = set(line["names"])
            elif line["event"] == "upsert":
                names.add(line["name"])
            elif line["event"] == "delete":
                names.remove(line["name"])
        return names

    def wait_objects(self, resource, names, lists=1):
        """Until just these are there, after at least so many lists."""
        self.wait(f"{resource} {sorted(names)} after {lists} lists",
                  lambda: self.lists(resource) >= lists and self.objects(resource) == set(names))

    def wait_event(self, resource, event, name, holds=lambda line: True):
        return self.wait(f"{event} of {resource} {name}", lambda: next(
            (line for line in self.lines(resource, event) if line["name"] == name and holds(line)), None))

    def stop(self):
        """The status of each resource type at the end."""
        self.process.popen.send_signal(signal.SIGTERM)
        code = self.process.popen.wait(10)
        check(code == 0, f"kube_probe follow ended with {code}")
        return {line["resource"]: line for resource in ("nodes", "pods", "absent")
                for line in self.lines(resource, "status")}


def probe(kubeconfig, *arguments):
    """Runs one command of kube_probe: its exit code and what it said."""
    done = subprocess.run([find_binary("kube_probe"), "--kubeconfig", kubeconfig, *arguments],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.stdout.strip(), f"kube_probe {arguments[0]}: no answer, {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout)


def expect(kubeconfig, outcome, *arguments):
    code, answer = probe(kubeconfig, *arguments)
    check(answer["outcome"] == outcome and code == (0 if outcome == "done" else 1),
          f"kube_probe {' '.join(arguments)}: expected {outcome}, got {answer} (exit {code})")
    return answer


def check_events(env, follower):
    api = env.plane.api
    api.post(PODS, objects.pod("late"))
    follower.wait_event("pods", "upsert", "late")
    api.patch(f"{PODS}/late", {"metadata": {"annotations": {"a": "1"}}})
    follower.wait_event("pods", "upsert", "late", lambda line: line["annotations"].get("a") == "1")
    api.delete(f"{PODS}/late")
    follower.wait_event("pods", "delete", "late")


def check_bind(env, follower, admin):
    uid = env.plane.api.get(f"{PODS}/pod-0")["metadata"]["uid"]
    bind = ("bind", "pod-0", "--node", NODE["sn"], "--uid")
    expect(admin, "conflict", *bind, "00000000-0000-0000-0000-000000000000")
    expect(admin, "done", *bind, uid, 'mortise.dev/assigned-devices={"main":["0"]}')
    bound = follower.wait_event("pods", "upsert", "pod-0", lambda line: line["node"] == NODE["sn"])
    check(bound["annotations"].get("mortise.dev/assigned-devices") == '{"main":["0"]}',
          f"the annotations of the Binding are not on the pod: {bound}")
    expect(admin, "conflict", *bind, uid)
    expect(admin, "not found", "bind", "no-such-pod", "--node", NODE["sn"], "--uid", uid)


def check_writes(admin, follower):
    created = expect(admin, "done", "lease", "leader", "--holder", "a")
    expect(admin, "conflict", "lease", "leader", "--holder", "b")
    renewed = expect(admin, "done", "lease", "leader", "--holder", "a", "--version", created["version"])
    check(renewed["version"] != created["version"], "an update left the resource version as it was")
    expect(admin, "conflict", "lease", "leader", "--holder", "b", "--version", created["version"])

    plan = expect(admin, "done", "config-map", "plan", "slots=0,1")
    expect(admin, "done", "config-map", "plan", "slots=2", "--version", plan["version"])
    expect(admin, "conflict", "config-map", "plan", "slots=3", "--version", plan["version"])

    expect(admin, "done", "annotate-node", NODE["sn"], "mortise.dev/kubelet=policy=none")
    follower.wait_event("nodes", "upsert", NODE["sn"],
                        lambda line: line["annotations"].get("mortise.dev/kubelet") == "policy=none")
    expect(admin, "not found", "annotate-node", "no-such-node", "a=b")


def check_token(env):
    """A service account's token, first without any right, then with all."""
    api = env.plane.api
    api.post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "probe"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = api.post(f"{ACCOUNTS}/probe/token", request)["status"]["token"]
    config = os.path.join(env.plane.dir, "token.kubeconfig")
    with open(os.path.join(env.plane.dir, "probe.token"), "w", encoding="utf-8") as f:
        f.write("not.a.token\n")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": f"https://localhost:{env.plane.api_port}",
                                                          "tls-server-name": "127.0.0.1",
                                                          "certificate-authority": env.plane.pki.ca}}],
                   "users": [{"name": "u", "user": {"tokenFile": "probe.token"}}]}, f)
    check("401" in expect(config, "refused", "pod", "pod-0")["detail"], "a wrong token was not refused with 401")
    with open(os.path.join(env.plane.dir, "probe.token"), "w", encoding="utf-8") as f:
        f.write(token + "\n")
    check("403 Forbidden" in expect(config, "refused", "pod", "pod-0")["detail"], "no right, and yet not forbidden")
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "probe"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "probe", "namespace": "default"}]})
    # The authorizer hears of the binding by a watch of its own.
    wait_for("the token's right", lambda: probe(config, "pod", "pod-0")[0] == 0, 10)


def check_restart(env, follower):
    """A new API server has no memory of old versions: what happened before our watch is back must come by a list."""
    lists = follower.lists("pods")
    env.plane.restart_apiserver()
    api = env.plane.api
    api.delete(f"{PODS}/pod-1")
    api.post(PODS, objects.pod("after-restart"))
    follower.wait_objects("pods", ["pod-0", "pod-2", "pod-3", "pod-4", "after-restart"], lists + 1)


def live_api(env):
    """Lists in pages, watches, binds and writes, and is right again after the API server was away."""
    api = env.plane.api
    admin = env.plane.kubeconfig("probe", "e2e-admin", "system:masters")
    follower = None
    try:
        with env.step("list, watch"):
            api.post(NODES, objects.node(NODE))
            for i in range(5):
                api.post(PODS, objects.pod(f"pod-{i}"))
            follower = Follower(env, admin)
            follower.wait_objects("pods", [f"pod-{i}" for i in range(5)])
            follower.wait_objects("nodes", [NODE["sn"]])
            follower.wait_objects("absent", [])
            check_events(env, follower)
        with env.step("writes"):
            check_bind(env, follower, admin)
            check_writes(admin, follower)
            check_token(env)
        with env.step("restart"):
            check_restart(env, follower)
        status = follower.stop()
    finally:
        if follower:
            follower.process.stop()
        for path in (PODS, NODES):
            env.plane.api.delete(path)
            wait_for(f"{path} to be empty", lambda p=path: not env.plane.api.get(p)["items"])
    pods = status["pods"]
    check(pods["pages"] >= 5, f"5 pods and then 4 or more in pages of 2 are at least 5 pages: {pods}")
    check(pods["gaps"] == 0, f"events that do not follow from one another: {pods}")
    check(status["absent"]["absent"] and status["absent"]["synced"], f"a type that does not exist: {status['absent']}")
    return (f"{pods['lists']} lists of {pods['pages']} pages, {pods['watches']} watches, {pods['events']} events, {pods['expired']} expired, "
            f"{pods['failures']} failures while the API server was away")
