"""What the extender decided in a live cluster, decided again offline."""

import json
import os
import random
import subprocess

from lib import decision_log, objects
from lib.bed import find_binary
from lib.books import BINDS, check, check_books, settled
from lib.procs import wait_for
from lib.stage import NODES, PODS, Stage

POLICY = "fgd:tie=best-fit"  # the extender's default


def _nodes(env):
    rows = [objects.a100(f"a100-{i:02d}") for i in range(40)] + [objects.v100(f"v100-{i:02d}") for i in range(8)]
    rows += [{"sn": f"t4-{i:02d}", "cpu_milli": 64000, "memory_mib": 262144, "gpu": 4, "model": "Tesla-T4"} for i in range(16)]
    return objects.write_cluster(os.path.join(env.plane.dir, "parity.csv"), rows)


def _pods(draw):
    """300 pods: 40 without GPUs, 260 that ask for 570 GPUs together; in random order."""
    sizes = [0] * 40 + [1] * 130 + [2] * 80 + [4] * 30 + [8] * 20
    draw.shuffle(sizes)
    # The larger a pod's CPU, the fewer GPUs beside it are of use: so that policies have something to differ about.
    return [objects.pod(f"p{i:03d}", gpus, cpu_milli=draw.choice([500, 2000, 8000]) if gpus != 8 else 4000)
            for i, gpus in enumerate(sizes)]


def _quiet(stage):
    """Settled, and nothing more is bound for as long as kube-scheduler may let a pod wait."""
    wait_for("every pod to be bound or refused", lambda: settled(stage), 90)
    seen = {"bound": -1, "rounds": 0}

    def still():
        bound = sum(bool(p["spec"].get("nodeName")) for p in stage.api.get(PODS)["items"])
        seen["rounds"] = seen["rounds"] + 1 if bound == seen["bound"] else 0
        seen["bound"] = bound
        return seen["rounds"] >= 5
    wait_for("no pod to be bound any more", still, 90, interval=1)
    return stage.api.get(PODS)["items"]


def _finish(stage, draw, count):
    running = [p["metadata"]["name"] for p in stage.api.get(PODS)["items"]
               if p["spec"].get("nodeName") and p.get("status", {}).get("phase") != "Succeeded"]
    for name in draw.sample(sorted(running), count):
        stage.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})


def _run(stage, draw):
    """The pods come, 60 of them end, three nodes are cordoned; how many were refused before room was made."""
    pods = _pods(draw)
    for pod in pods[:180]:
        stage.create(pod)
    for name in ("a100-03", "v100-01", "t4-05"):
        stage.patch_node(name, {"spec": {"unschedulable": True}})
    _finish(stage, draw, 20)
    for pod in pods[180:]:
        stage.create(pod)
    refused = sum(not p["spec"].get("nodeName") for p in _quiet(stage))
    _finish(stage, draw, 40)
    return refused, sum(bool(p["spec"].get("nodeName")) for p in _quiet(stage))


def _candidates(stage):
    """Pod -> the nodes that kube-scheduler asked about when its place was chosen."""
    def of(pod):
        chosen = None
        for exchange in reversed(stage.recorder.exchanges("filter", pod["metadata"]["uid"])):
            if exchange.answer.get("NodeNames") != [pod["spec"]["nodeName"]]:
                break
            chosen = exchange  # asked again, a pod keeps its place
        check(chosen, f"pod {pod['metadata']['name']} is bound where filter did not send it")
        return chosen.request["NodeNames"]
    return of


def _replay(log, policy):
    done = subprocess.run([find_binary("mortise"), "replay-log", "--log", log, "--policy", policy, "--json"],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode in (0, 1), f"mortise replay-log: {done.stderr.strip()}")
    return json.loads(done.stdout)


def parity(env):
    """300 pods through the real kube-scheduler; the API server's events replayed offline give the same places."""
    draw = random.Random(20)
    before = env.plane.api.get(PODS)["metadata"]["resourceVersion"]
    with Stage(env, _nodes(env), live=True, extender_entry=BINDS) as stage:
        for i in range(8):  # kubelet chooses there, on NUMA nodes
            stage.patch_node(f"v100-{i:02d}", {"metadata": objects.ALIGNED})
        refused, bound = _run(stage, draw)
        check(refused >= 30, f"only {refused} pods did not fit at first")
        check_books(stage)
        lines = decision_log.build(stage.api.history(PODS, before), stage.api.history(NODES, before), _candidates(stage))
        log = os.path.join(env.plane.dir, "parity.jsonl")
        with open(log, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)
        same = _replay(log, POLICY)
        check(same["decisions"] >= 230, f"only {same['decisions']} decisions are on record")
        check(same["same"] == same["decisions"],
              f"{same['decisions'] - same['same']} of {same['decisions']} decisions differ: {same['differences'][:5]}")
        other = _replay(log, "first-fit")
        check(other["same"] < other["decisions"], "another policy decides the same throughout")
        return (f"{bound} of 300 pods bound, {refused} not at first; 0 of {same['decisions']} decisions differ, with first-fit "
                f"{other['decisions'] - other['same']}")
