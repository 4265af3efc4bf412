"""Gangs as the controllers of others make them: the workloads of config/examples against the real kube-scheduler."""

import time

from lib import objects
from lib.books import BINDS, bound_pods, check, check_books, dgx_nodes
from lib.custom_types import Served
from lib.gang_checks import (SOON_S, check_nothing_held, create_all, delete_all, label_nodes, names_of, nodes_of, occupy,
                             seconds_until_whole)
from lib.procs import wait_for
from lib.stage import PODS, Stage
from lib.workloads import (LEADER_WORKER_SET, POD_GROUP, PYTORCH_JOB, VOLCANO_POD_GROUP, example, leader_worker_pods, pytorch_pods,
                           volcano_group, volcano_pods)

RACK = "topology.kubernetes.io/rack"
PINNED = 20  # more kinds of members than one search takes
TIER = "fabric.topograph.run/tier-1"


def pytorch_job_starts_whole(stage, job, labels=None):
    """A fifth of a job's room is missing, and then there: until then not even the master, which would fit, is bound."""
    occupy(stage, "filler", 1, "torch-00")
    names = create_all(stage, pytorch_pods(job, labels))
    check(names[0] == "pretrain-master-0" and len(names) == 5, f"the example makes {names}")
    check_nothing_held(stage, names, "GangNoRoom")
    freed = time.monotonic()
    stage.api.delete(f"{PODS}/filler")
    took = seconds_until_whole(stage, names, freed)
    check(check_books(stage) == 32, "the four workers do not have all GPUs")
    return names, took


def gang_pytorchjob(env):
    """A PyTorchJob's master, which has no GPU, and workers start together or not at all; by the job's own marks, and again by the
    PodGroup of scheduler-plugins that the training operator can make."""
    with Served(env.plane.api, PYTORCH_JOB, POD_GROUP), \
            Stage(env, dgx_nodes(env, "torch", 4), live=True, extender_entry=BINDS) as stage:
        label_nodes(stage, "torch", RACK, "aabb")
        job = stage.api.post(PYTORCH_JOB.path, example("pytorchjob.yaml"))
        names, by_job = pytorch_job_starts_whole(stage, job)
        delete_all(stage, names)
        stage.api.post(POD_GROUP.path, POD_GROUP.object("pretrain", {"minMember": len(names)}))
        _, by_group = pytorch_job_starts_whole(stage, job, {"scheduling.x-k8s.io/pod-group": "pretrain"})
        return f"whole {by_job:.1f} s after there is room, with a PodGroup {by_group:.1f} s"


def gang_volcano(env):
    """Pods that are there before their PodGroup wait for it; with it the gang starts in one tier-1 domain, as many as must and
    those beyond that have room there."""
    with Served(env.plane.api, VOLCANO_POD_GROUP), \
            Stage(env, dgx_nodes(env, "vol", 3), live=True, extender_entry=BINDS) as stage:
        label_nodes(stage, "vol", TIER, "aab")
        # Of four workers of 4 GPUs three fit beside this one in domain a, where the minimum of two and the driver must go.
        occupy(stage, "pinned", 4, "vol-00")
        job = example("volcano-job.yaml")
        names = create_all(stage, volcano_pods(job, "finetune-group"))
        check(names[0] == "finetune-driver-0" and len(names) == 5, f"the example makes {names}")
        check_nothing_held(stage, names, "GangWaits: waits for its group object PodGroup default/finetune-group")
        made = time.monotonic()
        stage.api.post(VOLCANO_POD_GROUP.path, volcano_group(job, "finetune-group"))
        took = seconds_until_whole(stage, names[:4], made)
        check_nothing_held(stage, names[4:], "GangNoRoom")
        check(set(nodes_of(stage, names[:4])) == {"vol-00", "vol-01"}, "members are not in domain a")
        check(check_books(stage) == 16, "the GPUs of domain a are not all in use")
        stage.api.delete(f"{PODS}/pinned")
        check(stage.wait_bound(names[4], SOON_S) == "vol-00", "the last worker is not in domain a")
        return f"whole {took:.1f} s after its PodGroup came"


def gang_leaderworkerset(env):
    """Of two replicas with room for one exactly one starts, in one rack, and the other when there is room; leaders come first and
    hold nothing."""
    with Served(env.plane.api, LEADER_WORKER_SET), \
            Stage(env, dgx_nodes(env, "lws", 4), live=True, extender_entry=BINDS) as stage:
        label_nodes(stage, "lws", RACK, "aabb")
        workload = stage.api.post(LEADER_WORKER_SET.path, example("leaderworkerset.yaml"))
        occupy(stage, "filler", 1, "lws-02")
        leaders, workers = leader_worker_pods(workload)
        check_nothing_held(stage, create_all(stage, leaders), "GangIncomplete")
        came = time.monotonic()
        create_all(stage, workers)
        replicas = [names_of(pods) for pods in zip(leaders, workers)]
        check(replicas == [["llm-0", "llm-0-1"], ["llm-1", "llm-1-1"]], f"the example makes {replicas}")
        wait_for("a replica to be whole", lambda: any(set(names) <= bound_pods(stage) for names in replicas), SOON_S, 0.03)
        first = time.monotonic() - came
        started, other = sorted(replicas, key=lambda names: not set(names) <= bound_pods(stage))
        check_nothing_held(stage, other, "GangNoRoom")
        check(set(nodes_of(stage, started)) == {"lws-00", "lws-01"}, f"{started} is not in rack a")

        freed = time.monotonic()
        stage.api.delete(f"{PODS}/filler")
        second = seconds_until_whole(stage, other, freed)
        check(set(nodes_of(stage, other)) == {"lws-02", "lws-03"}, f"{other} is not in rack b")
        check(check_books(stage) == 32, "not all GPUs are in use")
        return f"one whole {first:.1f} s after the workers came, the other {second:.1f} s after there is room"


def gang_pinned(env):
    """A gang of which each member may go to one node only, as Kueue's topology-aware scheduling leaves its pods, starts when the last of
    these nodes has room, and nobody before."""
    with Stage(env, dgx_nodes(env, "pin", PINNED), live=True, extender_entry=BINDS) as stage:
        occupy(stage, "filler", 1, "pin-07")
        pods = []
        for i in range(PINNED):
            pod = objects.pod(f"worker-{i:02d}", 8, annotations={"kueue.x-k8s.io/pod-group-total-count": str(PINNED)})
            pod["metadata"]["labels"] = {"kueue.x-k8s.io/pod-group-name": "pinned"}
            pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"pin-{i:02d}"}
            pods.append(pod)
        names = create_all(stage, pods)
        # Of pin-07 kube-scheduler itself finds that it has too few GPUs, and does not ask.
        check_nothing_held(stage, [name for name in names if name != "worker-07"], "Gang")
        freed = time.monotonic()
        stage.api.delete(f"{PODS}/filler")
        took = seconds_until_whole(stage, names, freed)
        check(nodes_of(stage, names) == [f"pin-{i:02d}" for i in range(PINNED)], "a member is not on its node")
        check(check_books(stage) == PINNED * 8, "not all GPUs are in use")
        return f"{PINNED} members whole {took:.1f} s after there is room"
