"""The log of a live cluster that `mortise replay-log` reads (docs/replay.md), made from the API server's own events."""

import json

from lib.books import ASSIGNED, DECISION
from lib.procs import E2EError


def _version(event):
    return int(event["object"]["metadata"]["resourceVersion"])


def _ended(event):
    return event["type"] == "DELETED" or event["object"].get("status", {}).get("phase") in ("Succeeded", "Failed")


class _Pods:
    """What became of the pods: where each was bound, by whom, and when it ended."""

    def __init__(self, events):
        self.decided, self.others = [], []  # (version of the bind, pod)
        self.ended = {}                     # uid -> version
        bound = set()
        for event in events:
            pod, uid = event["object"], event["object"]["metadata"]["uid"]
            if pod["spec"].get("nodeName") and uid not in bound:
                bound.add(uid)
                stamped = DECISION in pod["metadata"].get("annotations", {})
                (self.decided if stamped else self.others).append((_version(event), pod))
            if uid in bound and uid not in self.ended and _ended(event):
                self.ended[uid] = _version(event)


def _stamp(pod):
    stamp = json.loads(pod["metadata"]["annotations"][DECISION])
    return int(stamp["pods"]), int(stamp["nodes"]), stamp["order"]


def _decided(pod, candidates):
    annotations = pod["metadata"]["annotations"]
    return {"decided": {"pod": pod, "node": pod["spec"]["nodeName"], "devices": json.loads(annotations.get(ASSIGNED, "{}")),
                        "candidates": candidates(pod)}}


def build(pod_events, node_events, candidates):
    """The lines of the log. Each decision stands after the events that its stamp says were known then, and before all
    others; `candidates(pod)` are the nodes that kube-scheduler asked about."""
    pods = _Pods(pod_events)
    changes = [(_version(e), {"node_gone": e["object"]["metadata"]["name"]} if e["type"] == "DELETED"
                else {"node": e["object"]}) for e in node_events]
    moves = [(version, {"ended": uid}) for uid, version in pods.ended.items()]
    moves += [(version, {"bound": {"pod": pod, "node": pod["spec"]["nodeName"]}}) for version, pod in pods.others]
    changes.sort(key=lambda c: c[0])
    moves.sort(key=lambda m: m[0])
    lines, known = [], {"nodes": 0, "pods": 0}
    for stamp, pod in sorted(((_stamp(pod), pod) for _, pod in pods.decided), key=lambda d: (d[0][0], d[0][2])):
        for name, events, version in (("nodes", changes, stamp[1]), ("pods", moves, stamp[0])):
            if version < known[name]:
                raise E2EError(f"the decision about pod {pod['metadata']['name']} knew less of the {name} than the one before it")
            known[name] = version
            while events and events[0][0] <= version:
                lines.append(events.pop(0)[1])
        lines.append(_decided(pod, candidates))
    return lines
