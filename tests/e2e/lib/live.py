"""Scenarios in which the extender watches the API server and binds."""

import collections
import json
import os
import random
import time

from lib import objects
from lib.procs import E2EError, free_ports, wait_for
from lib.shipped import EXTENDER, SYSTEM
from lib.stage import PODS, Stage

ASSIGNED = "mortise.dev/assigned-devices"
BINDS = {"bindVerb": "bind"}


def check(condition, text):
    if not condition:
        raise E2EError(text)


def dgx_nodes(env, name, count, gpus=8):
    rows = [{"sn": f"{name}-{i:02d}", "cpu_milli": 96000, "memory_mib": 786432, "gpu": gpus,
             "model": "NVIDIA-A100-SXM4-40GB"} for i in range(count)]
    return objects.write_cluster(os.path.join(env.plane.dir, f"{name}.csv"), rows)


def held_devices(stage):
    """Node -> device -> pods that hold it, from what the API server has."""
    held = collections.defaultdict(lambda: collections.defaultdict(list))
    for pod in stage.api.get(PODS)["items"]:
        node = pod["spec"].get("nodeName")
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not node or ended or objects.GPU not in pod["spec"]["containers"][0]["resources"].get("limits", {}):
            continue
        text = pod["metadata"].get("annotations", {}).get(ASSIGNED)
        check(text, f"pod {pod['metadata']['name']} is bound without its devices")
        for device in json.loads(text)["main"]:
            held[node][device].append(pod["metadata"]["name"])
    return held


def check_books(stage):
    """No device twice, and as many free GPUs as the extender says."""
    held = held_devices(stage)
    for node, devices in held.items():
        twice = {d: pods for d, pods in devices.items() if len(pods) > 1}
        check(not twice, f"devices of {node} that several pods hold: {twice}")
    used = sum(len(devices) for devices in held.values())

    def told():
        for line in stage.metrics().splitlines():
            if line.startswith("mortise_cluster_gpus_used "):
                return float(line.split()[-1]) == used
        raise E2EError("no metric of used GPUs")
    wait_for(f"the extender to count {used} GPUs in use", told, 20)
    return used


def live_binding(env):
    """Pods created at once are bound by the extender: what fits, no device twice, and others when room is made."""
    with Stage(env, dgx_nodes(env, "live", 4), live=True, extender_entry=BINDS) as stage:
        sizes = [1, 2, 4, 8, 1, 2] * 4  # 72 GPUs for 32
        for i, gpus in enumerate(sizes):
            stage.create(objects.pod(f"p{i:02d}", gpus))
        for i in range(6):
            stage.create(objects.pod(f"cpu{i}"))

        def settled():
            pods = stage.api.get(PODS)["items"]
            return all(p["spec"].get("nodeName") or any(c["type"] == "PodScheduled" for c in
                       p.get("status", {}).get("conditions", [])) for p in pods)
        wait_for("every pod to be bound or refused", settled, 60)
        before = check_books(stage)
        check(before > 24, f"only {before} of 32 GPUs are in use")
        bound = [p["metadata"]["name"] for p in stage.api.get(PODS)["items"] if p["spec"].get("nodeName")]
        for name in bound[:6]:
            stage.api.delete(f"{PODS}/{name}")
        time.sleep(1)
        after = check_books(stage)
        return f"{len(bound)} pods bound, {before} of 32 GPUs; {after} after six were deleted"


def killed_while_binding(env, kills=3):
    """kill -9 of the extender at random moments: no device twice, no pod lost."""
    draw = random.Random(env.next_serial())
    with Stage(env, dgx_nodes(env, "kill", 10), live=True, extender_entry=BINDS) as stage:
        names = [f"k{i:02d}" for i in range(60)]
        for i, name in enumerate(names):
            stage.create(objects.pod(name, 1 + i % 2))  # 90 GPUs for 80: some must wait
            if i % 20 == 10 and i // 20 < kills:
                time.sleep(draw.uniform(0, 0.3))
                stage.kill_extender()

        def full():
            return sum(len(d) for d in held_devices(stage).values()) >= 79
        wait_for("80 GPUs to be in use", full, 90, interval=0.5)
        used = check_books(stage)
        return f"{kills} kills, {used} of 80 GPUs in use, none twice"


def refused_by_kubelet(env):
    """A node whose Topology Manager would refuse the pod never gets it."""
    row = {"sn": "tm", "cpu_milli": 78000, "memory_mib": 400000, "gpu": 8, "model": "Tesla-V100-SXM2-32GB"}
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "tm.csv"), [row])
    metadata = {"labels": {"nvidia.com/gpu.machine": "NVIDIA-DGX-1-with-V100", "nvidia.com/gpu.count": "8"},
                "annotations": {"mortise.dev/kubelet": "policy=single-numa-node,scope=pod"}}
    with Stage(env, cluster, live=True, node_metadata=metadata, extender_entry=BINDS) as stage:
        for i in range(2):
            stage.create(objects.pod(f"three-{i}", 3))
            stage.wait_bound(f"three-{i}")
        # Two GPUs are free, one on each NUMA node: enough by count, and kubelet would refuse.
        stage.create(objects.pod("pair", 2))
        condition = stage.wait_refused("pair")
        check("TopologyAffinity" in condition["message"], f"refused with {condition['message']!r}")
        stage.create(objects.pod("single", 1))
        stage.wait_bound("single")
        check(not stage.pod("pair")["spec"].get("nodeName"), "the pod was bound where kubelet refuses it")
        return condition["message"].split(": ", 1)[-1][:90]


def one_leader(env):
    """Of two replicas one answers; when it is killed the other does, and not before the lease has run out."""
    lease = ("--lease", f"{SYSTEM}/{EXTENDER}")
    with Stage(env, dgx_nodes(env, "lead", 2), live=True, extender_args=lease, extender_entry=BINDS) as stage:
        stage.create(objects.pod("first", 2))
        stage.wait_bound("first")
        ports = free_ports(2)
        second = stage.spawn_replica(*ports)
        try:
            why = wait_for("the second to say who leads", lambda: "leads" in stage.readyz(ports[1])[1] and stage.readyz(ports[1]))
            check(why[0] == 503, f"the second replica's /readyz is {why[0]}: {why[1]!r}")
            answer = stage.ask(ports[0], "/filter", {"NodeNames": ["lead-00"], "Pod": objects.pod("x", 1)})
            check("not ready" in answer.get("Error", ""), f"the second replica answers {answer}")
            stage.extender.popen.kill()
            killed = time.monotonic()
            wait_for("the second replica to lead", lambda: stage.readyz(ports[1])[0] == 200, 40)
            waited = time.monotonic() - killed
            # The lease was renewed at most 2 s before, and holds for 15 s from then on.
            check(waited > 10, f"the second replica leads {waited:.1f} s after the first was killed")
            return f"the second replica took over after {waited:.1f} s"
        finally:
            second.stop()
            stage.extender = None
