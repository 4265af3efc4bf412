"""The scenarios. A new one is a function of the environment and a row in SCENARIOS."""

import collections
import os

from lib import objects
from lib.books import check
from lib.crowds import crowd_at_bind, full_nodes, last_gpu
from lib.deployment import forged_annotations, manifests, other_schedulers
from lib.faults import (deleted_while_binding, faulty_bindings, late_list, refused_for_good, replaced_token,
                        slow_binding)
from lib.gang_preemption import gang_preemption
from lib.gang_racks import gang_required_rack
from lib.gang_restarts import gang_killed_while_binding
from lib.gang_shapes import gang_leaderworkerset, gang_pinned, gang_pytorchjob, gang_volcano
from lib.gangs import gangs
from lib.live import live_binding, one_leader, refused_by_kubelet
from lib.live_api import live_api
from lib.neighbours import refused_by_another, volumes
from lib.observed import devices_seen_by_dcgm, other_devices_than_predicted
from lib.parity import parity
from lib.pod_groups import native_pod_group
from lib.replicas import sidecars_follow_their_scheduler
from lib.restarts import (api_server_killed, expired_watch, killed_while_binding, scheduler_killed,
                          stopped_leader)
from lib.stage import Stage

HERE = os.path.dirname(os.path.abspath(__file__))
MIXED = os.path.join(HERE, "..", "clusters", "mixed.csv")


def check_filter(exchange):
    """The rules that hold for every filter answer; returns the answer."""
    where = f"filter answer for pod {exchange.request['Pod']['metadata']['name']}"
    check(exchange.status == 200, f"{where}: status {exchange.status}")
    answer = exchange.answer
    check(not answer.get("Error"), f"{where}: Error {answer.get('Error')!r}")
    asked = exchange.request["NodeNames"]
    answered = collections.Counter(answer.get("NodeNames") or [])
    for field in ("FailedNodes", "FailedAndUnresolvableNodes"):
        answered.update((answer.get(field) or {}).keys())
    wrong = {n: answered[n] for n in set(asked) | set(answered) if answered[n] != (n in asked)}
    check(len(set(asked)) == len(asked), f"{where}: kube-scheduler asked twice about one node")
    check(not wrong, f"{where}: every node asked about belongs in exactly one list, but (name, times): {wrong}")
    return answer


def check_answered_node(stage, name, uid, node):
    """The pod is on the single node of the last filter answer for it."""
    asked = stage.recorder.exchanges("filter", uid)
    check(asked, f"pod {name} was bound without asking the extender")
    for exchange in asked:
        check_filter(exchange)
    passed = asked[-1].answer["NodeNames"]
    check(passed == [node], f"pod {name} is on {node}, but the last filter answer passed {passed}")
    return asked


def first_contact(env):
    """kube-scheduler binds each pod to exactly the node that filter answered."""
    sizes = [1, 2, 4, 8, 1] * 4
    with Stage(env, MIXED) as stage:
        calls = []
        for i, gpus in enumerate(sizes):
            name = f"gpu-{i:02d}"
            uid = stage.create(objects.pod(name, gpus))
            calls += check_answered_node(stage, name, uid, stage.wait_bound(name))
        candidates = [len(c.request["NodeNames"]) for c in calls]
        slowest = max(c.seconds for c in calls)
        return (f"{len(sizes)} pods, {len(calls)} filter and {len(stage.recorder.exchanges('prioritize'))} prioritize calls, "
                f"{min(candidates)} to {max(candidates)} candidates, slowest filter {slowest * 1000:.1f} ms")


def check_refused(stage, name):
    condition = stage.wait_refused(name)
    check(condition.get("reason") == "Unschedulable", f"pod {name}: reason {condition.get('reason')}, not Unschedulable")
    check(not stage.pod(name)["spec"].get("nodeName"), f"pod {name} was bound all the same")
    return condition["message"]


def unschedulable(env):
    """A pod that fits nowhere stays Pending with a reason, whether kube-scheduler or the extender refuses it."""
    rows = objects.read_cluster(MIXED)
    # The extender knows of half of the GPUs only, as when devices fell ill after kubelet last spoke: then
    # kube-scheduler's own count lets a pod through that the extender must refuse.
    fewer = objects.write_cluster(os.path.join(env.plane.dir, "fewer.csv"), [{**r, "gpu": r["gpu"] // 2} for r in rows])
    with Stage(env, MIXED, extender_cluster=fewer) as stage:
        uid = stage.create(objects.pod("too-big", 64))
        message = check_refused(stage, "too-big")
        check(f"Insufficient {objects.GPU}" in message, f"kube-scheduler's reason is missing in {message!r}")
        check(not stage.recorder.exchanges(uid=uid), "the extender was asked although no node was left")

        uid = stage.create(objects.pod("refused", 8))
        message = check_refused(stage, "refused")
        asked = stage.recorder.exchanges("filter", uid)
        check(asked, "pod refused: the extender was not asked")
        answer = check_filter(asked[0])
        check(not answer["NodeNames"], f"pod refused: filter passed {answer['NodeNames']}")
        never = answer["FailedAndUnresolvableNodes"] or {}
        check(len(never) == len(asked[0].request["NodeNames"]),
              "pod refused: no node is large enough, so all belong in FailedAndUnresolvableNodes")
        check(all(reason in message for reason in never.values()), f"the extender's reason is missing in {message!r}")

        uid = stage.create(objects.pod("small", 1))
        check_answered_node(stage, "small", uid, stage.wait_bound("small"))
        return message


def unknown_node(env):
    """A node that the extender does not know yet is refused as one that may be known later; the others serve."""
    rows = objects.read_cluster(MIXED)
    known = objects.write_cluster(os.path.join(env.plane.dir, "known.csv"), rows[1:])
    new = rows[0]["sn"]
    with Stage(env, MIXED, extender_cluster=known) as stage:
        uid = stage.create(objects.pod("early", 1))
        node = stage.wait_bound("early")
        asked = check_answered_node(stage, "early", uid, node)
        reason = (asked[-1].answer["FailedNodes"] or {}).get(new)
        check(reason, f"node {new} is not in FailedNodes")
        return f"{new}: {reason}"


def non_gpu_pod(env):
    """A pod without GPUs binds and the extender never hears of it."""
    with Stage(env, MIXED) as stage:
        uid = stage.create(objects.pod("plain"))
        node = stage.wait_bound("plain")
        check(not stage.recorder.exchanges(), f"the extender was asked about pod plain ({uid})")
        return f"bound to {node}"


PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def preemption_frees_what_is_needed(env):
    """The victims are those without which kubelet admits the pod, and no others."""
    # Two NUMA nodes, which kubelet fills one after the other; each holds one pod of low priority and three of
    # middle priority. Two GPUs by count are those of the two low ones, which are not on one NUMA node.
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "dgx.csv"), [objects.v100("dgx")])
    for name, value in (("low", 10), ("middle", 20), ("high", 1000)):
        env.plane.api.post(PRIORITIES, objects.priority_class(name, value))
    with Stage(env, cluster, live=True, node_metadata=objects.ALIGNED,
               extender_entry={"bindVerb": "bind", "preemptVerb": "preempt"}) as stage:
        names = {}
        for numa in (0, 1):
            for kind in ("low", "middle", "middle", "middle"):
                name = f"{kind}-on-{numa}-{len(names)}"
                names[stage.create(objects.pod(name, 1, priority_class=kind))] = name
                stage.wait_bound(name)
        uid = stage.create(objects.pod("aligned", 2, priority_class="high"))
        node = stage.wait_bound("aligned")
        asked = stage.recorder.exchanges("preempt", uid)
        check(asked, "the extender was not asked for preemption")
        check(all(e.status == 200 for e in asked), f"preempt: status {[e.status for e in asked]}")

        def named(document):
            return sorted(names[p["UID"]] for p in document["NodeNameToMetaVictims"][node]["Pods"])
        proposed, victims = named(asked[0].request), named(asked[0].answer)
        check([v.split("-")[0] for v in proposed] == ["low", "low"], f"kube-scheduler proposes {proposed}, not the low ones")
        check([v.split("-")[0] for v in victims] == ["low", "middle"], f"victims {victims}, not a low and a middle one")
        check(len({v.split("-")[2] for v in victims}) == 1, f"victims {victims} are not on one NUMA node")
        for victim in victims:
            stage.wait_gone(victim)
        for name in set(names.values()) - set(victims):
            check(stage.pod(name)["spec"].get("nodeName") == node, f"pod {name} is not in its place any more")
        return f"{' and '.join(proposed)} proposed, {' and '.join(victims)} evicted"


SCENARIOS = {
    "parity": parity,
    "first-contact": first_contact,
    "unschedulable": unschedulable,
    "unknown-node": unknown_node,
    "non-gpu-pod": non_gpu_pod,
    "preemption-frees-what-is-needed": preemption_frees_what_is_needed,
    "live-api": live_api,
    "live-binding": live_binding,
    "killed-while-binding": killed_while_binding,
    "refused-by-kubelet": refused_by_kubelet,
    "one-leader": one_leader,
    "manifests": manifests,
    "forged-annotations": forged_annotations,
    "other-schedulers": other_schedulers,
    "gangs": gangs,
    "gang-pytorchjob": gang_pytorchjob,
    "gang-volcano": gang_volcano,
    "gang-leaderworkerset": gang_leaderworkerset,
    "gang-pinned": gang_pinned,
    "gang-required-rack": gang_required_rack,
    "gang-preemption": gang_preemption,
    "gang-killed-while-binding": gang_killed_while_binding,
    "native-pod-group": native_pod_group,
    "sidecars-follow-their-scheduler": sidecars_follow_their_scheduler,
    "stopped-leader": stopped_leader,
    "scheduler-killed": scheduler_killed,
    "api-server-killed": api_server_killed,
    "expired-watch": expired_watch,
    "faulty-bindings": faulty_bindings,
    "refused-for-good": refused_for_good,
    "slow-binding": slow_binding,
    "deleted-while-binding": deleted_while_binding,
    "late-list": late_list,
    "replaced-token": replaced_token,
    "refused-by-another": refused_by_another,
    "volumes": volumes,
    "last-gpu": last_gpu,
    "crowd-at-bind": crowd_at_bind,
    "full-nodes": full_nodes,
    "other-devices-than-predicted": other_devices_than_predicted,
    "devices-seen-by-dcgm": devices_seen_by_dcgm,
}
