"""Gangs over a restart of the extender: places that were only reserved are taken again as they were planned."""

import json
import random
import signal
import threading
import time

from lib import objects
from lib.books import BINDS, Creator, check, check_devices, dgx_nodes
from lib.fault_proxy import Fault, FaultProxy
from lib.procs import wait_for
from lib.stage import PLANS, PODS, Stage

GPUS = 8
GANGS = {"small0": 8, "small1": 8, "small2": 8, "large": 20}  # a plan of 20 is in a ConfigMap
SPARE = 8  # nodes, so that a gang that is planned anew may land elsewhere
ROUNDS = ("small1", "large")
SLOT = "mortise.dev/gang-slot"
MAPS = "/api/v1/namespaces/default/configmaps"


def members(gang):
    annotations = {"mortise.dev/gang-name": gang, "mortise.dev/gang-min-member": str(GANGS[gang])}
    return [objects.pod(f"{gang}-{i:02d}", GPUS, annotations=annotations) for i in range(GANGS[gang])]


def nodes_of_pods(stage):
    """Gang -> member -> node, of those that are bound."""
    bound = {gang: {} for gang in GANGS}
    for pod in stage.api.get(PODS)["items"]:
        if pod["spec"].get("nodeName"):
            name = pod["metadata"]["name"]
            bound[name.split("-")[0]][name] = pod["spec"]["nodeName"]
    return bound


def stored_maps(stage):
    """The ConfigMaps with plans, by name."""
    return {m["metadata"]["name"]: m for m in stage.api.get(PLANS)["items"]}


def planned_nodes(stage, member):
    """The nodes of the plan that a bound member names, and whether it was in a ConfigMap."""
    slot = json.loads(stage.pod(member)["metadata"]["annotations"][SLOT])
    if "in" in slot:
        name = f"mortise-gang-{slot['plan']}"
        stored = stored_maps(stage)
        check(name in stored, f"{member} names ConfigMap {name}; there are {sorted(stored)}")
        owners = stored[name]["metadata"]["ownerReferences"]
        check(all(o["kind"] == "Pod" for o in owners) and len(owners) == GANGS["large"], f"{name} is owned by {owners}")
        plan = json.loads(stored[name]["data"]["plan"])
    else:
        plan = slot["all"]
    before, after = plan["at"].split("*")
    return [before + part.split(":")[0] + after for role in plan["roles"].values() for part in role.split(",")], "in" in slot


def kill_amid_binds(stage, proxy, gang, held):
    """kill -9 when all members of the gang but those held are bound; returns where these are, and the plan's nodes."""
    wanted = GANGS[gang] - len(held)
    wait_for(f"{wanted} members of {gang} to be bound", lambda: len(nodes_of_pods(stage)[gang]) >= wanted, 60, 0.02)
    stage.extender.popen.send_signal(signal.SIGKILL)
    stage.extender.popen.wait()
    time.sleep(0.3)  # what it had sent arrives
    bound = nodes_of_pods(stage)
    check(len(bound[gang]) == wanted, f"{len(bound[gang])} members of {gang} are bound, not {wanted}")
    plans = {g: planned_nodes(stage, next(iter(of_gang))) for g, of_gang in bound.items() if of_gang}
    for name in held:
        proxy.bindings_of(name, None)
    return bound, plans


def wait_whole(stage, since, timeout=60):
    """Until all gangs are whole; how long after that moment the last one was."""
    def whole():
        bound = nodes_of_pods(stage)
        return all(len(bound[gang]) == count for gang, count in GANGS.items())
    wait_for("all gangs to be whole", whole, timeout, 0.05)
    return time.monotonic() - since


def clear(stage, gang):
    """Deletes all pods. The extender takes the plans away of the gangs that it had to finish; others are left to the garbage
    collector, which does not run here."""
    uids = {pod["metadata"]["uid"] for pod in stage.api.get(PODS)["items"]}
    stage.api.delete(PODS)
    wait_for("the pods to be gone", lambda: not stage.api.get(PODS)["items"])
    check(check_devices(stage) == 0, "GPUs of deleted pods are still in use")
    if GANGS[gang] > 16:
        wait_for("the plans of the gang to be gone with it", lambda: not stored_maps(stage), 20)
    for name, stored in stored_maps(stage).items():
        owners = {owner["uid"] for owner in stored["metadata"]["ownerReferences"]}
        check(owners <= uids, f"{name} has other owners than the pods that are gone")
        stage.api.delete(f"{MAPS}/{name}")


def kill_round(env, stage, proxy, draw, gang):
    """Creates all gangs, kills the extender amid the binds of one, starts it again and checks; seconds until whole."""
    count = GANGS[gang]
    held = [f"{gang}-{i:02d}" for i in draw.sample(range(count), draw.randint(1, count - 1))]
    dropped = threading.Event()
    for name in held:
        proxy.bindings_of(name, Fault(drop=True, hold_before=dropped))
    pods = [pod for name in GANGS for pod in members(name)]
    draw.shuffle(pods)
    creator = Creator(env, pods)
    bound, plans = kill_amid_binds(stage, proxy, gang, held)
    dropped.set()
    creator.join()
    restarted = time.monotonic()
    stage.start_extender_again()
    took = wait_whole(stage, restarted)
    after = nodes_of_pods(stage)
    for name, (nodes, in_map) in plans.items():
        check(in_map == (name == "large"), f"the plan of {name} is {'' if in_map else 'not '}in a ConfigMap")
        check(sorted(nodes) == sorted(after[name].values()), f"{name}: planned {sorted(nodes)}, is on {sorted(after[name].values())}")
        moved = {m: n for m, n in bound[name].items() if after[name][m] != n}
        check(not moved, f"bound members are elsewhere: {moved}")
    restored = stage.metric("mortise_gang_places_restored_total")
    check(restored >= len(held), f"{restored:g} places were restored, {len(held)} members of {gang} waited")
    used = check_devices(stage)
    check(used == sum(GANGS.values()) * GPUS, f"{used} GPUs are in use")
    clear(stage, gang)
    return f"{gang} with {count - len(held)} of {count} bound: {took:.1f} s"


def gang_killed_while_binding(env):
    """kill -9 of the extender when some members of a gang are bound and others hold places: all gangs end whole, and the
    members that waited are where the stored plan has them."""
    draw = random.Random(env.next_serial())
    nodes = sum(GANGS.values()) + SPARE
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "plan", nodes), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        rounds = [kill_round(env, stage, proxy, draw, gang) for gang in ROUNDS * (5 if env.long else 1)]
        return f"until whole after the restart: {', '.join(rounds)}"
