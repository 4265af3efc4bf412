"""Gangs that must be in one rack, asked for in three ways, among pods that are for themselves."""

import time

from lib import objects
from lib.books import BINDS, bound_pods, check, check_books, dgx_nodes, wait_all_bound
from lib.custom_types import Served
from lib.gang_checks import (PATIENCE_S, SOON_S, check_nothing_held, create_all, label_nodes, nodes_of, occupy, seconds_until_whole,
                             wait_refused_with)
from lib.stage import NODES, PODS, Stage
from lib.workloads import KAI_POD_GROUP

RACK = "example.com/rack"  # of no kind that is known by itself: --levels names it
RACKS = "aaaabbbbcccc"
GATE = "kueue.x-k8s.io/admission"


def of_mortise(number, gang="own"):
    """One of three members that say so themselves."""
    marks = {"mortise.dev/gang-name": gang, "mortise.dev/gang-min-member": "3", "mortise.dev/topology-required": "rack"}
    return objects.pod(f"{gang}-{number}", 8, annotations=marks)


def of_kueue(number):
    """One of three pods of a group of Kueue's, gated until Kueue has quota for all."""
    pod = objects.pod(f"queued-{number}", 8, annotations={"kueue.x-k8s.io/pod-group-total-count": "3",
                                                          "kueue.x-k8s.io/podset-required-topology": RACK})
    pod["metadata"]["labels"] = {"kueue.x-k8s.io/pod-group-name": "queued", "kueue.x-k8s.io/queue-name": "research"}
    pod["spec"]["schedulingGates"] = [{"name": GATE}]
    return pod


def of_kai(number):
    """One of two pods whose PodGroup of KAI's has the level."""
    return objects.pod(f"grouped-{number}", 8, annotations={"pod-group-name": "grouped"})


GANGS = {"own": 3, "queued": 3, "grouped": 2}
MAKERS = {"own": of_mortise, "queued": of_kueue, "grouped": of_kai}


def members(gang):
    return [f"{gang}-{i}" for i in range(GANGS[gang])]


def rack_of(stage, node):
    return stage.api.get(f"{NODES}/{node}")["metadata"]["labels"][RACK]


def check_one_rack(stage, gang):
    nodes = nodes_of(stage, members(gang))
    racks = {rack_of(stage, node) for node in nodes}
    check(len(racks) == 1, f"gang {gang} is on {nodes}, in racks {sorted(racks)}")
    return racks.pop()


def start_interleaved(stage):
    """Members of all gangs and single pods in turn; returns how long the gang that was gated took once it was not."""
    constraint = {"topology": "cluster", "requiredTopologyLevel": RACK}
    stage.api.post(KAI_POD_GROUP.path, KAI_POD_GROUP.object("grouped", {"minMember": 2, "topologyConstraint": constraint}))
    singles = []
    for i in range(max(GANGS.values())):
        for gang, count in GANGS.items():
            if i < count:
                stage.create(MAKERS[gang](i))
        singles.append(f"single-{i}")
        stage.create(objects.pod(singles[-1], 2))
    wait_all_bound(stage, members("own") + members("grouped") + singles, SOON_S)
    check(not bound_pods(stage) & set(members("queued")), "a pod that Kueue has gated is bound")
    for name in members("queued"):
        stage.api.patch(f"{PODS}/{name}", {"spec": {"schedulingGates": None}})
    return seconds_until_whole(stage, members("queued"), time.monotonic())


def pods_on(stage, node):
    return [pod["metadata"]["name"] for pod in stage.api.get(PODS)["items"] if pod["spec"].get("nodeName") == node]


def free_nodes(stage):
    names = [node["metadata"]["name"] for node in stage.api.get(NODES)["items"]]
    return [name for name in names if not pods_on(stage, name)]


def leave(stage, *names):
    for name in names:
        stage.api.delete(f"{PODS}/{name}")
        stage.wait_gone(name)


def check_waits(stage, name, why):
    """The replacement stays where its gang may be, although another rack has a free node."""
    wait_refused_with(stage, [name], "GangNoRoom")
    time.sleep(PATIENCE_S)
    check(free_nodes(stage), "no other rack has a free node: the scenario shows nothing")
    check(name not in bound_pods(stage), f"{name} is bound to {stage.pod(name)['spec'].get('nodeName')} although {why}")


def replace_member(stage):
    """A member of the gang that says so itself is replaced while its node is cordoned and the rack full, then while its node is
    taken and the rack gets room, then with nothing in the way."""
    rack, name = check_one_rack(stage, "own"), "own-0"
    home = nodes_of(stage, [name])[0]
    spare, = {f"rack-{i:02d}" for i, r in enumerate(RACKS) if r == rack} - set(nodes_of(stage, members("own")))
    if spare in free_nodes(stage):
        occupy(stage, "filler", 8, spare)
    else:
        occupy(stage, "filler", 2, spare)  # beside the three single pods
    stage.patch_node(home, {"spec": {"unschedulable": True}})
    leave(stage, name)
    stage.create(of_mortise(0))
    check_waits(stage, name, f"{home} is cordoned and rack {rack} full")
    stage.patch_node(home, {"spec": {"unschedulable": None}})
    check(stage.wait_bound(name, SOON_S) == home, f"{name} is not on {home} again")

    leave(stage, name)
    occupy(stage, "squatter", 8, home)
    stage.create(of_mortise(0))
    check_waits(stage, name, f"rack {rack} is full")
    leave(stage, *pods_on(stage, spare))
    check(stage.wait_bound(name, SOON_S) == spare, f"{name} is not on {spare}, the only free node of rack {rack}")

    leave(stage, "squatter", name)
    stage.create(of_mortise(0))
    check(stage.wait_bound(name, SOON_S) == spare, f"{name} is not on {spare} again")
    check(check_one_rack(stage, "own") == rack, f"the gang has left rack {rack}")


def check_no_gang_over_two_racks(stage):
    """Three nodes are free, and no three of one rack: a gang of three waits."""
    free = free_nodes(stage)
    most = max(sum(rack_of(stage, node) == rack for node in free) for rack in "abc")
    check(len(free) >= 3 > most, f"nodes {free} are free: the scenario shows nothing")
    check_nothing_held(stage, create_all(stage, [of_mortise(i, "wide") for i in range(3)]), "GangNoRoom")


def gang_required_rack(env):
    """Gangs that ask for one rack, in three ways, start in one each, among single pods; a replaced member stays in its rack or waits,
    and gets the place of the one that is gone when that is free."""
    with Served(env.plane.api, KAI_POD_GROUP), \
            Stage(env, dgx_nodes(env, "rack", len(RACKS)), live=True, extender_args=("--levels", f"rack={RACK}"),
                  extender_entry=BINDS) as stage:
        label_nodes(stage, "rack", RACK, RACKS)
        took = start_interleaved(stage)
        racks = {gang: check_one_rack(stage, gang) for gang in GANGS}
        check(check_books(stage) == 8 * sum(GANGS.values()) + 6, "not all members and single pods have their GPUs")
        replace_member(stage)
        check_no_gang_over_two_racks(stage)
        check_books(stage)
        return f"racks {racks}; {took:.1f} s from the last gate to whole; three replacements in rack {racks['own']}"
