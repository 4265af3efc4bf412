"""Pods that are evicted so that a gang fits, and gangs of which somebody has to go."""

import time

from lib import objects
from lib.books import bound_pods, check, check_books, dgx_nodes, wait_all_bound
from lib.procs import wait_for
from lib.stage import PODS, Stage

NODES = 6
WHOLE_S = 20
PART_S = 10
PREEMPTS = {"bindVerb": "bind", "preemptVerb": "preempt"}
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def member(gang, number, size, priority_class):
    annotations = {"mortise.dev/gang-name": gang, "mortise.dev/gang-min-member": str(size)}
    return objects.pod(f"{gang}-{number}", 8, annotations=annotations, priority_class=priority_class)


def names(gang, size):
    return {f"{gang}-{i}" for i in range(size)}


def create_gang(stage, gang, size, priority_class):
    for i in range(size):
        stage.create(member(gang, i, size, priority_class))
    return time.monotonic()


class Parts:
    """For how long a gang that ran was there in part."""

    def __init__(self, stage, members):
        self._stage = stage
        self._members = members
        self._since = None
        self.longest = 0.0

    def look(self):
        left = bound_pods(self._stage) & self._members
        now = time.monotonic()
        if 0 < len(left) < len(self._members):
            self._since = self._since or now
            self.longest = max(self.longest, now - self._since)
        else:
            self._since = None
        return left


def wait_evicted(stage, parts, waiting, timeout):
    """Until nobody of the gang is left and these pods are bound."""
    wait_for(f"{len(waiting)} pods to be bound and a gang to be gone",
             lambda: not parts.look() and waiting <= bound_pods(stage), timeout, interval=0.05)


def evict_for_gang(stage):
    """A gang of four 8-GPU pods on six full nodes: three of a gang of low priority, three of single pods."""
    create_gang(stage, "batch", 3, "ebb")
    wait_all_bound(stage, names("batch", 3))
    singles = {f"single-{i:02d}" for i in range(4 * (NODES - 3))}
    for name in sorted(singles):
        stage.create(objects.pod(name, 2, priority_class="ebb"))
    wait_all_bound(stage, singles)
    where = {name: stage.pod(name)["spec"]["nodeName"] for name in singles}
    parts = Parts(stage, names("batch", 3))
    created = create_gang(stage, "train", 4, "flood")
    wait_evicted(stage, parts, names("train", 4), 90)
    took = time.monotonic() - created
    # The three nodes of the gang and one of the others: so nobody goes on a node where nothing is needed.
    gone = singles - bound_pods(stage)
    check(len(gone) == 4 and len({where[name] for name in gone}) == 1, f"evicted: {sorted((n, where[n]) for n in gone)}")
    check(check_books(stage) == NODES * 8, "not all GPUs are in use")
    check(took <= WHOLE_S, f"the gang was whole after {took:.1f} s")
    check(parts.longest <= PART_S, f"a running gang was there in part for {parts.longest:.1f} s")
    return took, parts.longest, singles - gone


def evict_a_gang(stage, singles):
    """A single pod takes a node of a gang at its minimum: kube-scheduler evicts there, the extender the rest."""
    for name in singles:
        stage.api.delete(f"{PODS}/{name}")
    create_gang(stage, "pair", 2, "ebb")
    wait_all_bound(stage, names("pair", 2))
    parts = Parts(stage, names("pair", 2))
    created = time.monotonic()
    stage.create(objects.pod("alone", 8, priority_class="swell"))
    wait_evicted(stage, parts, {"alone"}, 60)
    took = time.monotonic() - created
    evicted = stage.metric('mortise_gang_evictions_total{outcome="ok"}')
    check(evicted == 1, f"the extender evicted {evicted:g} pods, not the one that kube-scheduler leaves")
    check(names("train", 4) <= bound_pods(stage), "the gang of high priority is not whole any more")
    check(parts.longest <= PART_S, f"a running gang was there in part for {parts.longest:.1f} s")
    return took, parts.longest


def leaving(stage):
    return {p["metadata"]["name"] for p in stage.api.get(PODS)["items"] if p["metadata"].get("deletionTimestamp")}


def end(stage, name):
    """As kubelet does when the containers have stopped."""
    stage.api.delete(f"{PODS}/{name}")
    stage.wait_gone(name)


def victims_that_take_their_time(stage):
    """Nobody more goes while two victims are there still, and nobody else gets the room of the first that is gone."""
    old = {f"old-{i}" for i in range(3)}
    for name in sorted(old):
        pod = objects.pod(name, 8, priority_class="ebb")
        pod["spec"]["terminationGracePeriodSeconds"] = 600
        stage.create(pod)
    wait_all_bound(stage, old)
    create_gang(stage, "late", 2, "flood")
    wait_for("two pods to be evicted", lambda: len(leaving(stage)) == 2, 30)
    stage.create(objects.pod("thief", 8, priority_class="ebb"))
    first, second = sorted(leaving(stage))
    end(stage, first)
    time.sleep(4)
    check(leaving(stage) == {second}, f"{leaving(stage)} are being deleted, not {second} alone")
    check(bound_pods(stage) == old - {first}, f"bound: {bound_pods(stage)}")
    end(stage, second)
    ended = time.monotonic()
    wait_all_bound(stage, names("late", 2), 30)
    took = time.monotonic() - ended
    check(bound_pods(stage) == (old - {first, second}) | names("late", 2), f"bound: {bound_pods(stage)}")
    check(took <= WHOLE_S, f"the gang was whole {took:.1f} s after its last victim was gone")
    return took


def gang_preemption(env):
    """Exactly those go that are in the way, the gang starts whole, and no running gang is left in part."""
    for name, value in (("ebb", 10), ("swell", 500), ("flood", 1000)):
        env.plane.api.post(PRIORITIES, objects.priority_class(name, value))
    with Stage(env, dgx_nodes(env, "evict", NODES), live=True, extender_entry=PREEMPTS) as stage:
        whole, part, singles = evict_for_gang(stage)
        alone, part_alone = evict_a_gang(stage, singles)
    with Stage(env, dgx_nodes(env, "slow", 3), live=True, extender_entry=PREEMPTS) as stage:
        waited = victims_that_take_their_time(stage)
        return (f"7 of 15 pods evicted, the gang whole after {whole:.1f} s, the one evicted in part for {part:.1f} s; "
                f"a gang evicted for a single pod bound after {alone:.1f} s, in part for {part_alone:.1f} s; "
                f"whole {waited:.1f} s after the last of two slow victims")
