"""Scenarios in which a program stops, dies or starts anew while pods come and go."""

import json
import random
import signal
import time

from lib import objects
from lib.books import (ASSIGNED, BINDS, Creator, bound_pods, check, check_devices, dgx_nodes, held_devices,
                       wait_all_bound)
from lib.fault_proxy import FaultProxy
from lib.procs import free_ports, wait_for
from lib.shipped import LEASE
from lib.stage import PODS, Stage

LEASE_S = 15


def wait_binds(stage, count, timeout=60):
    wait_for(f"{count} bind calls", lambda: len(stage.recorder.exchanges("bind")) >= count, timeout, interval=0.01)


def kill_round(env, stage, draw, number, pods):
    """Creates pods, kills the extender twice while they are bound, checks, and deletes them."""
    names = [f"r{number:02d}-{i:03d}" for i in range(pods)]
    before = len(stage.recorder.exchanges("bind"))
    creator = Creator(env, [objects.pod(name, 1) for name in names])
    for at in sorted(draw.sample(range(pods * 9 // 10), 2)):
        wait_binds(stage, before + at)
        time.sleep(draw.uniform(0, 0.02))
        stage.kill_extender()
    creator.join()
    wait_all_bound(stage, names)
    used = check_devices(stage)
    check(used == pods, f"{used} GPUs are in use by {pods} pods of one")
    stage.api.delete(PODS)
    wait_for("the pods to be gone", lambda: not stage.api.get(PODS)["items"])
    check(check_devices(stage) == 0, "GPUs of deleted pods are still in use")


def killed_while_binding(env):
    """kill -9 of the extender at random moments: no device twice, no pod lost."""
    rounds, pods = (20, 500) if env.long else (5, 100)
    draw = random.Random(env.next_serial())
    with Stage(env, dgx_nodes(env, "kill", pods // 8 + 2), live=True, extender_entry=BINDS) as stage:
        for number in range(rounds):
            kill_round(env, stage, draw, number, pods)
        calls = stage.recorder.exchanges("bind")
        failed = sum(1 for e in calls if e.status != 200 or e.answer["Error"])
        return f"{rounds} rounds of {pods} pods, {2 * rounds} kills, {len(calls)} bind calls of which {failed} failed"


def stopped_leader(env):
    """The leader is stopped for twice the lease in the middle of binds: another takes over, and when the first goes on it
    binds nothing more, not even what it was about to send."""
    entry = {**BINDS, "httpTimeout": "5s"}
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "stopped", 30), live=True, extender_entry=entry,
                                         extender_args=LEASE, kubeconfig=proxy.kubeconfig(env)) as stage:
        first, first_admin = stage.extender.popen, stage.admin_port
        port, admin_port = free_ports(2)
        second = stage.spawn_replica(port, admin_port, env.extender_kubeconfig)
        try:
            names = [f"s{i:03d}" for i in range(200)]
            creator = Creator(env, [objects.pod(name, 1) for name in names])
            wait_binds(stage, 50)
            # Its Bindings are to be stopped on their way out: after the lease was looked at, before they were sent.
            proxy.handshakes.close()
            proxy.cut()
            proxy.mend()
            wait_for("Bindings that wait for a connection", lambda: proxy.handshakes.waiting >= 12, 20, 0.005)
            first.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            bound = len(bound_pods(stage))
            wait_for("the second replica to lead", lambda: stage.readyz(admin_port)[0] == 200, 60)
            took = time.monotonic() - stopped
            stage.recorder.upstream_port = port
            creator.join()
            time.sleep(max(0.0, stopped + 2 * LEASE_S - time.monotonic()))
            resumed = time.monotonic()
            proxy.handshakes.open()
            first.send_signal(signal.SIGCONT)
            wait_for("the first to see who leads", lambda: "leads" in stage.readyz(first_admin)[1], 30)
            stage.admin_port = first_admin
            wait_for("the first to have answered all", lambda: not stage.metric('mortise_http_connections{listener="scheduler"}'), 60)
            late = [b for b in proxy.bindings() if b.came > resumed]
            check(not late, f"the first sent Bindings after its lease: {[(b.pod, b.status) for b in late]}")
            stage.admin_port = admin_port
            wait_all_bound(stage, names, 90)
            check(check_devices(stage) == 200, "not 200 GPUs are in use")
            return f"stopped after {bound} of 200 pods, the second led {took:.1f} s later"
        finally:
            first.send_signal(signal.SIGCONT)
            second.stop()


def scheduler_killed(env):
    """kill -9 of kube-scheduler in the middle of binds: a new one binds the rest, and the books are right."""
    with Stage(env, dgx_nodes(env, "again", 26), live=True, extender_entry=BINDS) as stage:
        names = [f"a{i:03d}" for i in range(200)]
        creator = Creator(env, [objects.pod(name, 1) for name in names])
        for at in (60, 130):
            wait_binds(stage, at)
            stage.kill_scheduler()
        creator.join()
        wait_all_bound(stage, names)
        check(check_devices(stage) == 200, "not 200 GPUs are in use")
        return f"2 kills, {len(stage.recorder.exchanges('filter'))} filter calls for 200 pods"


def api_server_killed(env):
    """The API server dies and comes back while pods are bound and deleted."""
    with Stage(env, dgx_nodes(env, "apiserver", 20), live=True, extender_entry=BINDS) as stage:
        first = [f"b{i:02d}" for i in range(60)]
        Creator(env, [objects.pod(name, 1) for name in first]).join()
        wait_binds(stage, 30)
        bound = len(bound_pods(stage))
        env.plane.restart_apiserver()
        stage.api = env.plane.api
        for name in first[:20]:
            stage.api.delete(f"{PODS}/{name}")
        rest = first[20:] + [f"c{i:02d}" for i in range(40)]
        for name in rest[40:]:
            stage.create(objects.pod(name, 2))
        wait_all_bound(stage, rest, 90)
        used = check_devices(stage, 60)
        check(used == 40 + 80, f"{used} GPUs are in use, not 40 + 80")
        return f"killed when {bound} of 60 pods were bound; {used} GPUs in use by {len(rest)} pods in the end"


def place(stage, name, node, device):
    """A pod that somebody else bound."""
    pod = objects.pod(name, 1, annotations={ASSIGNED: json.dumps({"main": [str(device)]})})
    pod["spec"]["nodeName"] = node
    stage.create(pod)


def expired_watch(env):
    """Changes that the extender missed and nobody can tell any more: its watches end with 410, and it lists again."""
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "expired", 2), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        for i in range(6):
            stage.create(objects.pod(f"old-{i}", 1))
            stage.wait_bound(f"old-{i}")
        check(check_devices(stage) == 6, "not 6 GPUs are in use")
        proxy.cut()
        held = held_devices(stage)
        free = [(n, d) for n in ("expired-00", "expired-01") for d in range(8) if str(d) not in held[n]]
        for i in range(3):
            stage.api.delete(f"{PODS}/old-{i}")
            place(stage, f"missed-{i}", *free[i])
        place(stage, "missed-too", *free[3])
        version = env.plane.compact()
        env.plane.restart_apiserver()  # its own memory of versions is gone with it
        stage.api = env.plane.api
        proxy.mend()
        wait_for("a watch to end with 410", lambda: 410 in proxy.statuses("/api/v1/pods"), 60)
        used = check_devices(stage, 60)
        check(used == 7, f"{used} GPUs are in use, not 7")
        stage.create(objects.pod("after", 4))
        stage.wait_bound("after")
        check(check_devices(stage) == 11, "not 11 GPUs are in use")
        return f"compacted at version {version}, {proxy.statuses('/api/v1/pods').count(410)} watches of pods ended with 410"
