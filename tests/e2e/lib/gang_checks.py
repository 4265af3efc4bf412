"""What the scenarios of gangs have in common."""

import time

from lib import objects
from lib.books import bound_pods, check, refusal, wait_all_bound
from lib.procs import E2EError, wait_for
from lib.stage import PODS

SOON_S = 8  # a gang that may start does: kube-scheduler's back-off is 2 s at most, and the machine may be busy
PATIENCE_S = 2  # what must not happen has so long to happen: kube-scheduler's back-off


def names_of(pods):
    return [pod["metadata"]["name"] for pod in pods]


def create_all(stage, pods):
    """The names of the pods."""
    for pod in pods:
        stage.create(pod)
    return names_of(pods)


def delete_all(stage, names):
    for name in names:
        stage.api.delete(f"{PODS}/{name}")


def label_nodes(stage, prefix, key, values):
    """One value for each of the nodes that dgx_nodes() names."""
    for i, value in enumerate(values):
        stage.patch_node(f"{prefix}-{i:02d}", {"metadata": {"labels": {key: value}}})


def occupy(stage, name, gpus, node):
    """Binds a single pod of so many GPUs that may go to this node only."""
    pod = objects.pod(name, gpus)
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    stage.create(pod)
    stage.wait_bound(name)


def nodes_of(stage, names):
    """The node of each pod; all are bound."""
    return [stage.pod(name)["spec"]["nodeName"] for name in names]


def seconds_until_whole(stage, names, since):
    """Since a moment of time.monotonic() until all of the pods are bound, which is soon."""
    wait_all_bound(stage, names, SOON_S, interval=0.03)
    return time.monotonic() - since


def wait_refused_with(stage, names, reason):
    """Until kube-scheduler says of each pod that it waits for this reason."""
    for name in names:
        def heard(name=name):
            return refusal(stage.pod(name)) or ""
        try:
            wait_for(f"pod {name} to hear {reason!r}", lambda: reason in heard(), 20)
        except E2EError as error:
            raise E2EError(f"{error}; it has heard {heard()!r}") from error


def check_nothing_held(stage, names, reason):
    """Each of the pods waits for this reason, and some time later none is bound and no place is held for any."""
    wait_refused_with(stage, names, reason)
    time.sleep(PATIENCE_S)
    bound = bound_pods(stage) & set(names)
    check(not bound, f"of pods that wait for all of {names}, {sorted(bound)} are bound")
    check(stage.metric("mortise_reservations") == 0, f"places are held while {names} wait")
