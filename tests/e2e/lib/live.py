"""Scenarios in which the extender watches the API server and binds."""

import os
import time

from lib import objects
from lib.books import BINDS, bound_pods, check, check_books, dgx_nodes, settled
from lib.procs import free_ports, wait_for
from lib.shipped import LEASE
from lib.stage import PODS, Stage


def live_binding(env):
    """Pods created at once are bound by the extender: what fits, no device twice, and others when room is made."""
    with Stage(env, dgx_nodes(env, "live", 4), live=True, extender_entry=BINDS) as stage:
        sizes = [1, 2, 4, 8, 1, 2] * 4  # 72 GPUs for 32
        for i, gpus in enumerate(sizes):
            stage.create(objects.pod(f"p{i:02d}", gpus))
        for i in range(6):
            stage.create(objects.pod(f"cpu{i}"))
        wait_for("every pod to be bound or refused", lambda: settled(stage), 60)
        before = check_books(stage)
        check(before > 24, f"only {before} of 32 GPUs are in use")
        bound = bound_pods(stage)
        for name in sorted(name for name in bound if name.startswith("p"))[:6]:
            stage.api.delete(f"{PODS}/{name}")
        wait_for("a pod that was refused to be bound", lambda: bound_pods(stage) - bound, 30)
        after = check_books(stage)
        return f"{len(bound)} pods bound, {before} of 32 GPUs; {after} after six that hold GPUs were deleted"


def refused_by_kubelet(env):
    """A node whose Topology Manager would refuse the pod never gets it."""
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "tm.csv"), [objects.v100("tm")])
    with Stage(env, cluster, live=True, node_metadata=objects.ALIGNED, extender_entry=BINDS) as stage:
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
    with Stage(env, dgx_nodes(env, "lead", 2), live=True, extender_args=LEASE, extender_entry=BINDS) as stage:
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
