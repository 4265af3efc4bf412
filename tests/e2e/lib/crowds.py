"""Scenarios of many at once: pods for one GPU, and nodes in one request."""

import json
import os
import threading

from lib import objects
from lib.books import BINDS, Creator, bound_pods, check, check_devices, refusal
from lib.procs import read_text, wait_for
from lib.stage import PODS, Stage

CROWD = 50


def last_gpu(env):
    """50 pods at once for one free GPU: one is bound, and 49 wait with a reason."""
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "last.csv"), [objects.a100("last", 8)])
    with Stage(env, cluster, live=True, extender_entry=BINDS) as stage:
        stage.create(objects.pod("seven", 7))
        stage.wait_bound("seven")
        pods = [objects.pod(f"w{i:02d}", 1) for i in range(CROWD)]
        creators = [Creator(env, pods[i::5]) for i in range(5)]
        for creator in creators:
            creator.join()

        def settled():
            waiting = [p for p in stage.api.get(PODS)["items"] if not p["spec"].get("nodeName")]
            return len(waiting) == CROWD - 1 and all(refusal(p) for p in waiting) and waiting
        waiting = wait_for("49 pods to wait with a reason", settled, 60, 0.2)
        check(len(bound_pods(stage)) == 2, f"bound: {sorted(bound_pods(stage))}")
        check(check_devices(stage) == 8, "not 8 GPUs are in use")
        return f"49 wait: {refusal(waiting[0])[:80]}"


def crowd_at_bind(env):
    """50 pods bound at once to the one free GPU, straight at the extender: one bind succeeds."""
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "bind.csv"), [objects.a100("bind-gpu", 1), objects.a100("bind-cpu", 0)])
    with Stage(env, cluster, live=True, extender_entry=BINDS) as stage:
        uids = {}
        for i in range(CROWD):
            pod = objects.pod(f"w{i:02d}", 1)
            pod["spec"]["schedulerName"] = "nobody"
            uids[f"w{i:02d}"] = stage.create(pod)
        together = threading.Barrier(CROWD)
        answers = {}

        def run(number, name, uid):
            pod = objects.pod(name, 1)
            pod["metadata"].update({"uid": uid, "namespace": "default"})
            # A question about one node holds no place for anybody; the other kind does.
            nodes = ["bind-gpu", "bind-cpu"] if number % 2 else ["bind-gpu"]
            together.wait(30)
            stage.ask(stage.recorder.upstream_port, "/filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes}, timeout=30)
            together.wait(30)
            answers[name] = stage.ask(stage.recorder.upstream_port, "/bind", {
                "PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": "bind-gpu"}, timeout=30)["Error"]
        threads = [threading.Thread(target=run, args=(i, n, u), daemon=True) for i, (n, u) in enumerate(uids.items())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        check(len(answers) == CROWD, f"only {len(answers)} of {CROWD} binds were answered")
        done = {name for name, error in answers.items() if not error}
        check(len(done) == 1, f"{len(done)} binds succeeded")
        check(bound_pods(stage) == done, f"the API server has {bound_pods(stage)} bound, the extender said {done}")
        check(check_devices(stage) == 1, "not one GPU is in use")
        return f"{len(answers) - 1} refused: {sorted(set(e.split(': ', 1)[-1] for e in answers.values() if e))[0][:80]}"


def peak_memory(process):
    """The largest resident size a process has had, in bytes."""
    for line in read_text(f"/proc/{process.popen.pid}/status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def full_node(node):
    """With as much in it as a Node of a large cluster has: labels, conditions, and the list of images."""
    node["metadata"]["annotations"] = {f"example.com/annotation-{i}": "x" * 60 for i in range(10)}
    node["status"]["images"] = [{"names": [f"registry.invalid/some/image-{i}@sha256:" + f"{i:064x}",
                                           f"registry.invalid/some/image-{i}:v1.{i}"], "sizeBytes": 10 ** 8 + i}
                                for i in range(58)]
    return node


def full_nodes(env):
    """nodeCacheCapable: false: 5,000 whole Node objects, 60 MB, are answered in time and in bounded memory."""
    known = 5000 if env.long else 200
    rows = [objects.a100("tight", 2)] + [objects.a100(f"wide-{i:04d}", 8) for i in range(1, known)]
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "full.csv"), rows)
    entry = {**BINDS, "nodeCacheCapable": False}
    with Stage(env, cluster, live=True, extender_entry=entry, extender_args=("--policy", "best-fit")) as stage:
        rows += [objects.a100(f"wide-{i:04d}", 8) for i in range(known, 5000)]
        nodes = [full_node(objects.node(r)) for r in rows]
        nodes = nodes[2500:] + nodes[:2500]
        pod = objects.pod("large", 2)
        pod["metadata"].update({"uid": "large", "namespace": "default"})
        question = {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
        size = len(json.dumps(question))
        # kube-scheduler's own time limit, if none is set, is 5 s; the connection's is as long.
        before = peak_memory(stage.extender)
        answer = stage.ask(stage.recorder.upstream_port, "/filter", question, timeout=5)
        peak = peak_memory(stage.extender) - before
        check(not answer["Error"] and answer["NodeNames"] is None, f"error {answer['Error']!r}, names {answer['NodeNames']}")
        passed = answer["Nodes"]["items"]
        # Best fit: of all nodes only this one is full with the pod.
        check(passed == [n for n in nodes if n["metadata"]["name"] == "tight"], f"{len(passed)} nodes passed, or it was changed")
        failed, never = answer["FailedNodes"], answer["FailedAndUnresolvableNodes"]
        check(len(failed) + len(never) == 4999 and not set(failed) & set(never), f"{len(failed)} + {len(never)} nodes failed")
        unknown = [n for n, reason in failed.items() if reason.startswith("UnknownNode")]
        check(len(unknown) == 5000 - known, f"{len(unknown)} nodes are unknown")
        check(peak <= 3 * size, f"{peak >> 20} MiB for a request of {size >> 20} MiB")

        uid = stage.create(objects.pod("p0", 2))
        node = stage.wait_bound("p0")
        asked = stage.recorder.exchanges("filter", uid)[-1]
        check(asked.request["NodeNames"] is None and len(asked.request["Nodes"]["items"]) >= known - 1,
              "kube-scheduler did not send Node objects")
        check([n["metadata"]["name"] for n in asked.answer["Nodes"]["items"]] == [node], f"p0 is on {node}, not where filter said")
        return f"{size / 1e6:.0f} MB, {known} of 5000 nodes known, {peak >> 20} MiB more at most"
