"""The extender's books against what the API server has."""

import collections
import json
import os
import threading

from lib import objects
from lib.procs import E2EError, wait_for
from lib.stage import PODS

ASSIGNED = "mortise.dev/assigned-devices"
DECISION = "mortise.dev/decision"
BINDS = {"bindVerb": "bind"}


def check(condition, text):
    if not condition:
        raise E2EError(text)


def dgx_nodes(env, name, count, gpus=8):
    rows = [objects.a100(f"{name}-{i:02d}", gpus) for i in range(count)]
    return objects.write_cluster(os.path.join(env.plane.dir, f"{name}.csv"), rows)


def held_devices(stage):
    """Node -> device -> pods that hold it, from what the API server has."""
    held = collections.defaultdict(lambda: collections.defaultdict(list))
    for pod in stage.api.get(PODS)["items"]:
        node = pod["spec"].get("nodeName")
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        container = pod["spec"]["containers"][0]
        if not node or ended or objects.GPU not in container["resources"].get("limits", {}):
            continue
        text = pod["metadata"].get("annotations", {}).get(ASSIGNED)
        check(text, f"pod {pod['metadata']['name']} is bound without its devices")
        for device in json.loads(text)[container["name"]]:
            held[node][device].append(pod["metadata"]["name"])
    return held


def wait_used(stage, gpus, timeout=20):
    """Until the extender counts so many GPUs in use."""
    def used():
        return stage.metric("mortise_cluster_gpus_used")
    try:
        wait_for(f"the extender to count {gpus} GPUs in use", lambda: used() == gpus, timeout)
    except E2EError as error:
        raise E2EError(f"{error}; it counts {used():g}") from error


def check_books(stage, timeout=20):
    """No device twice, and soon as many GPUs in use as the extender says, while pods may still come and go; returns how
    many are."""
    counts = {}

    def agree():
        held = held_devices(stage)
        for node, devices in held.items():
            twice = {d: pods for d, pods in devices.items() if len(pods) > 1}
            check(not twice, f"devices of {node} that several pods hold: {twice}")
        counts["pods"] = sum(len(devices) for devices in held.values())
        counts["told"] = stage.metric("mortise_cluster_gpus_used")
        return counts["pods"] == counts["told"]
    try:
        wait_for("the extender's count of GPUs in use to be that of the pods", agree, timeout)
    except E2EError as error:
        raise E2EError(f"{error}: {counts}") from error
    return counts["pods"]


def check_devices(stage, timeout=20):
    """check_books, and on every node the devices that are not free are those that the pods have."""
    used = check_books(stage, timeout)
    held = held_devices(stage)
    for row in objects.read_cluster(stage.cluster):
        free = stage.told_of(row["sn"])["free_milli_gpu_by_device"]
        taken = sorted(str(i) for i, left in enumerate(free) if left == 0)
        check(taken == sorted(held[row["sn"]]), f"{row['sn']}: the extender has {taken} taken, the pods {sorted(held[row['sn']])}")
    return used


def settled(stage):
    """The pods, once each is bound or kube-scheduler has said why not; else None."""
    pods = stage.api.get(PODS)["items"]
    done = all(p["spec"].get("nodeName") or any(c["type"] == "PodScheduled" for c in p.get("status", {}).get("conditions", []))
               for p in pods)
    return pods if done else None


def refusal(pod):
    """What kube-scheduler says about a pod that waits; None while it has said nothing."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False" and condition["reason"] == "Unschedulable":
            return condition["message"]
    return None


def bound_pods(stage):
    return {p["metadata"]["name"] for p in stage.api.get(PODS)["items"] if p["spec"].get("nodeName")}


def wait_all_bound(stage, names, timeout=60, interval=0.2):
    names = set(names)
    try:
        wait_for(f"{len(names)} pods to be bound", lambda: names <= bound_pods(stage), timeout, interval)
    except E2EError as error:
        raise E2EError(f"{error}; {len(names - bound_pods(stage))} are not: {sorted(names - bound_pods(stage))[:10]}") from error


class Creator:
    """Creates pods from a thread of its own, as fast as the API server takes them."""

    def __init__(self, env, pods):
        self._api = env.plane.api.another()
        self._error = None
        self._thread = threading.Thread(target=self._run, args=(pods,), daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self, pods):
        try:
            for pod in pods:
                self._api.post(PODS, pod)
        except E2EError as error:
            self._error = error
