"""Scenarios with two extenders and one Lease, each beside a kube-scheduler of its own."""

import time

from lib import objects
from lib.books import BINDS, check, dgx_nodes
from lib.procs import free_ports, wait_for
from lib.shipped import LEASE
from lib.stage import Stage

# A step of the one that asks, one of the holder and one more of the first, 2 s each, and kube-scheduler's back-off between
# attempts, 1, 2, 4 and 8 s.
FOLLOWS_WITHIN_S = 15


def bound_after(stage, name):
    """Creates a pod of one GPU; the seconds until it is bound."""
    started = time.monotonic()
    stage.create(objects.pod(name, 1))
    stage.wait_bound(name)
    return time.monotonic() - started


def sidecars_follow_their_scheduler(env):
    """kube-scheduler asks the extender that does not lead: it soon does, and nobody was killed."""
    with Stage(env, dgx_nodes(env, "side", 2), live=True, extender_args=LEASE, extender_entry=BINDS) as stage:
        first = stage.recorder.upstream_port
        bound_after(stage, "before")
        second, second_admin = free_ports(2)
        replica = stage.spawn_replica(second, second_admin)
        try:
            wait_for("the second to say who leads", lambda: "leads" in stage.readyz(second_admin)[1])
            took = []
            # As if the other kube-scheduler led now; then the first one again.
            for turn, (port, admin, idle_admin) in enumerate([(second, second_admin, stage.admin_port),
                                                              (first, stage.admin_port, second_admin)]):
                stage.recorder.upstream_port = port
                took.append(bound_after(stage, f"turn-{turn}"))
                check(took[-1] < FOLLOWS_WITHIN_S, f"turn {turn}: bound after {took[-1]:.1f} s")
                check(stage.readyz(admin)[0] == 200, f"turn {turn}: the extender that is asked is not ready")
                wait_for("the other to say who leads", lambda a=idle_admin: "leads" in stage.readyz(a)[1], 10)
                replica.require_alive()
            return f"bound {took[0]:.1f} s after kube-scheduler asked the other extender, {took[1]:.1f} s after it came back"
        finally:
            replica.stop()
