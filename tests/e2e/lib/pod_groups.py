"""Native pod groups: kube-scheduler asks about the members in trials, which it repeats for each placement and reverts."""

import contextlib
import time

from lib import objects
from lib.books import BINDS, check, check_books, dgx_nodes
from lib.procs import wait_for
from lib.stage import NODES, PODS, Stage

RACK = "example.com/rack"
# Release -> feature gates and version of the API, all off by default.
ALPHA = {"1.36": ("GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true", "v1alpha2")}


@contextlib.contextmanager
def alpha_api(env, gates, version):
    """kube-apiserver with the feature gates, and without them again afterwards."""
    env.plane.restart_apiserver("--feature-gates", gates, "--runtime-config", f"scheduling.k8s.io/{version}=true")
    try:
        yield f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups"
    finally:
        env.plane.restart_apiserver()


class Groups:
    def __init__(self, stage, path):
        self._stage = stage
        self._path = path

    def create(self, name, count, gpus, minimum=None, rack=False):
        """A gang and its pods, NAME-0 and so on."""
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum or count}}}
        if rack:
            spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        self._stage.api.post(self._path, {"kind": "PodGroup", "metadata": {"name": name}, "spec": spec,
                                          "apiVersion": self._path.split("/namespaces/")[0].removeprefix("/apis/")})
        return [self.add(name, i, gpus) for i in range(count)]

    def add(self, name, number, gpus):
        pod = objects.pod(f"{name}-{number}", gpus)
        pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        return self._stage.create(pod)

    def delete(self, name, count):
        for i in range(count):
            self._stage.api.delete(f"{PODS}/{name}-{i}")
        self._stage.api.delete(f"{self._path}/{name}")

    def nodes(self, name, count, timeout=30.0):
        """The nodes of the members, when all are bound."""
        return [self._stage.wait_bound(f"{name}-{i}", timeout) for i in range(count)]


def check_all_at_once(stage, groups):
    """Four members fill the four nodes; three of them stay pending without the fourth."""
    for i in range(4):
        stage.patch_node(f"group-{i:02d}", {"metadata": {"labels": {RACK: "ab"[i // 2]}}})
    uids = groups.create("full", 3, 8, minimum=4)
    time.sleep(2)
    check(not any(stage.pod(f"full-{i}")["spec"].get("nodeName") for i in range(3)), "three of four were bound")
    uids.append(groups.add("full", 3, 8))
    nodes = groups.nodes("full", 4)
    check(len(set(nodes)) == 4, f"four pods of 8 GPUs are on {nodes}")
    check(check_books(stage) == 32, "not all GPUs are in use")
    groups.delete("full", 4)
    return uids


def check_placements(stage, groups):
    """One rack has too little room: the members are asked about in both racks and bound in the other."""
    stage.create(objects.pod("single", 4))
    taken = stage.wait_bound("single")
    uids = groups.create("racked", 4, 4, rack=True)
    nodes = groups.nodes("racked", 4)
    racks = {stage.api.get(f"{NODES}/{n}")["metadata"]["labels"][RACK] for n in nodes}
    check(racks == {"b" if taken in ("group-00", "group-01") else "a"}, f"{taken} is half full, and the members are on {nodes}")
    asked = {}
    for uid in uids:
        exchanges = stage.recorder.exchanges("filter", uid)
        asked[uid] = {frozenset(e.request["NodeNames"]) for e in exchanges}
        check(not any(e.answer["Error"] for e in exchanges), "a filter answer has an Error")
    check(any(len(sets) > 1 for sets in asked.values()), "no member was asked about in two placements")
    check(check_books(stage) == 20, "the members do not hold 16 GPUs")
    groups.delete("racked", 4)
    return max(len(stage.recorder.exchanges("filter", uid)) for uid in uids)


def check_refused_gang_holds_nothing(stage, groups):
    """A gang that does not fit stays pending; a single pod gets what its trial was told."""
    groups.create("large", 5, 8)
    stage.wait_refused("large-0")
    for i in range(3):
        stage.create(objects.pod(f"after-{i}", 8))
        stage.wait_bound(f"after-{i}", 10)
    check(not any(stage.pod(f"large-{i}")["spec"].get("nodeName") for i in range(5)), "a part of the gang was bound")
    check(check_books(stage) == 28, "not all GPUs but those beside the single pod are in use")
    groups.delete("large", 5)


def check_room_returns(stage, groups):
    """Four members for the four nodes wait while one node is half in use, though three would fit, and are bound when it is free;
    returns how long that took."""
    for i in range(3):
        stage.api.delete(f"{PODS}/after-{i}")
    groups.create("waiting", 4, 8)
    stage.wait_refused("waiting-0")
    time.sleep(2)
    check(not any(stage.pod(f"waiting-{i}")["spec"].get("nodeName") for i in range(4)), "a part of the gang was bound")
    check(check_books(stage) == 4, "something but the single pod holds GPUs")
    freed = time.monotonic()
    stage.api.delete(f"{PODS}/single")
    groups.nodes("waiting", 4)
    took = time.monotonic() - freed
    check(check_books(stage) == 32, "not all GPUs are in use")
    return took


def native_pod_group(env):
    """Members of native pod groups are bound together, on no device twice, however often their trials are repeated."""
    release = ".".join(env.plane.version().lstrip("v").split(".")[:2])
    if release not in ALPHA:
        return f"not tried: needs one of {', '.join(ALPHA)}"
    gates, version = ALPHA[release]
    with alpha_api(env, gates, version) as path:
        wait_for("the API of pod groups", lambda: "items" in env.plane.api.get(path))
        with Stage(env, dgx_nodes(env, "group", 4), live=True, extender_entry=BINDS,
                   scheduler_args=("--feature-gates", gates)) as stage:
            groups = Groups(stage, path)
            check_all_at_once(stage, groups)
            trials = check_placements(stage, groups)
            check_refused_gang_holds_nothing(stage, groups)
            took = check_room_returns(stage, groups)
            return (f"4 x 8 GPUs at once, 4 x 4 in one rack after {trials} questions about one member, 5 x 8 refused, 4 x 8 whole "
                    f"{took:.1f} s after there is room")
