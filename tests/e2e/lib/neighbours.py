"""Scenarios in which others have a say: another extender, volumes."""

import http.server
import json
import os
import threading

from lib import http_reply, objects
from lib.books import BINDS, check, check_devices
from lib.procs import wait_for
from lib.stage import NODES, PODS, Stage

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ZONE = "topology.kubernetes.io/zone"


class Refuser:
    """An extender that refuses one node, the first that it is asked about."""

    def __init__(self):
        self.node = None
        self.asked = []  # the names of each call
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def entry(self):
        return {"urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}", "filterVerb": "filter",
                "nodeCacheCapable": True, "managedResources": [{"name": "example.com/also", "ignoredByScheduler": True}]}

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _answer(self, names):
        self.asked.append(names)
        self.node = self.node or names[0]
        return {"NodeNames": [n for n in names if n != self.node],
                "FailedNodes": {n: "not here" for n in names if n == self.node}}

    def _handler(refuser):  # noqa: N805 - the inner class needs its own self
        class Handler(http_reply.Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                question = json.loads(self.body())
                self.reply(200, json.dumps(refuser._answer(question["NodeNames"])).encode())
        return Handler


def refused_by_another(env):
    """Another extender refuses our node again and again: it is set aside, and the pod lands on the next best."""
    # Best fit: "a" is full with the pod, "b" has two GPUs left, "c" six.
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "refuser.csv"), [objects.a100("c", 8), objects.a100("b", 4), objects.a100("a", 2)])
    refuser = Refuser()
    try:
        with Stage(env, cluster, live=True, extender_entry=BINDS, extender_args=("--policy", "best-fit"),
                   more_extenders=[refuser.entry]) as stage:
            pod = objects.pod("moves", 2)
            for amounts in pod["spec"]["containers"][0]["resources"].values():
                amounts["example.com/also"] = "1"
            uid = stage.create(pod)

            def bound():
                # A pod that an extender refused waits for something to happen in the cluster.
                stage.patch_node("c", {"metadata": {"labels": {"event": str(len(refuser.asked))}}})
                return stage.pod("moves")["spec"].get("nodeName")
            node = wait_for("pod moves to be bound", bound, 60, 0.2)
            passed = [e.answer["NodeNames"] for e in stage.recorder.exchanges("filter", uid)]
            check(passed == [["a"], ["a"], ["b"]], f"filter passed {passed}")
            check(refuser.asked == passed and node == "b", f"the other was asked {refuser.asked}, the pod is on {node}")
            check(stage.metric("mortise_answers_refused_total") == 1, "mortise_answers_refused_total is not 1")
            check(check_devices(stage) == 2, "not 2 GPUs are in use")
            return "refused on a twice, then bound on b"
    finally:
        refuser.close()


def volume(name, zone, storage_class, claim=None):
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
            "local": {"path": "/none"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}}}
    if claim:
        spec["claimRef"] = claim
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def create_claim(stage, name, storage_class):
    return stage.api.post(CLAIMS, {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                 "resources": {"requests": {"storage": "1Gi"}}}})


def bind_claim(stage, name, volume_name):
    """What the controller of volumes does with a claim and the volume that is meant for it."""
    stage.api.patch(f"{CLAIMS}/{name}", {"metadata": {"annotations": {
        "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}},
        "spec": {"volumeName": volume_name}})
    stage.api.patch(f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}})
    stage.api.patch(f"{VOLUMES}/{volume_name}/status", {"status": {"phase": "Bound"}})


def pod_with_claim(name, gpus, claim):
    pod = objects.pod(name, gpus)
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return pod


def reference(claim):
    return {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim["metadata"]["name"],
            "uid": claim["metadata"]["uid"]}


def claimed_by(stage, volume_name):
    """The claim that kube-scheduler chose the volume for, if it has."""
    return stage.api.get(f"{VOLUMES}/{volume_name}")["spec"].get("claimRef", {}).get("name")


def volumes(env):
    """A pod lands where its volume is; one whose volume is never ready holds GPUs no longer than it waits."""
    # By best fit both pods would go to zone a.
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "zones.csv"), [objects.a100("in-a", 2), objects.a100("in-b", 8)])
    with Stage(env, cluster, live=True, extender_entry=BINDS, extender_args=("--policy", "best-fit")) as stage:
        for zone in "ab":
            stage.patch_node(f"in-{zone}", {"metadata": {"labels": {ZONE: zone}}})
        stage.api.post(CLASSES, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"},
                                 "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
        try:
            claim = create_claim(stage, "bound", "later")
            stage.api.post(VOLUMES, volume("v-bound", "b", "later", reference(claim)))
            bind_claim(stage, "bound", "v-bound")
            uid = stage.create(pod_with_claim("there", 2, "bound"))
            check(stage.wait_bound("there") == "in-b", "the pod is not in the zone of its volume")
            asked = stage.recorder.exchanges("filter", uid)
            check(asked[0].request["NodeNames"] == ["in-b"], f"asked about {asked[0].request['NodeNames']}")

            stage.api.post(VOLUMES, volume("v-later", "b", "later"))
            stage.api.patch(f"{VOLUMES}/v-later/status", {"status": {"phase": "Available"}})
            create_claim(stage, "later", "later")
            stage.create(pod_with_claim("waits", 2, "later"))
            wait_for("kube-scheduler to choose a volume", lambda: claimed_by(stage, "v-later") == "later", 30)
            stage.api.delete(f"{PODS}/waits")
            check(check_devices(stage) == 2, "not 2 GPUs are in use")

            stage.create(pod_with_claim("again", 2, "later"))
            wait_for("kube-scheduler to wait for the claim", lambda: stage.recorder.exchanges("filter")[-1].request["Pod"]["metadata"]["name"] == "again", 30)
            bind_claim(stage, "later", "v-later")
            check(stage.wait_bound("again") == "in-b", "the pod is not in the zone of its volume")
            check(check_devices(stage) == 4, "not 4 GPUs are in use")
            return "two pods in the zone of their volumes, a third gone while it waited for one"
        finally:
            for path in (PODS, CLAIMS, VOLUMES, CLASSES):
                stage.api.delete(path)
