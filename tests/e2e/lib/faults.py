"""Scenarios in which the way between the extender and the API server fails."""

import os
import random
import threading

from lib import objects
from lib.books import BINDS, check, check_devices, dgx_nodes, wait_all_bound
from lib.fault_proxy import Fault, FaultProxy
from lib.procs import wait_for
from lib.stage import PODS, Stage

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
GRANTS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

# What happens to the first Bindings of a pod; what the API server answered to each of its Bindings then (None: it never
# got it); how many bind calls of kube-scheduler fail.
CASES = {
    "refused": ([Fault(answer=409)], [None, 201], 1),
    "busy": ([Fault(answer=429)], [None, 201], 0),
    "timeout-unwritten": ([Fault(answer=504)], [None, 201], 0),
    "timeout-written": ([Fault(answer=504, forward=True)], [201], 0),
    "timeouts-unwritten": ([Fault(answer=504)] * 3, [None, None, None, 201], 1),  # the extender tries three times
    "timeouts-written": ([Fault(answer=504), Fault(answer=504, forward=True)], [None, 201], 0),
    "lost": ([Fault(drop=True)], [None, 201], 0),
    "answer-lost": ([Fault(drop=True, forward=True)], [201], 0),
}


def bind_calls(stage, uid):
    """The errors that kube-scheduler was told, oldest first; empty for a success."""
    return [e.answer["Error"] for e in stage.recorder.exchanges("bind", uid)]


def taken(proxy, uid):
    return [b for b in proxy.bindings() if b.uid == uid and b.status == 201]


def check_case(stage, proxy, name):
    faults, statuses, failures = CASES[name]
    proxy.next_bindings(*faults)
    uid = stage.create(objects.pod(name, 2))
    stage.wait_bound(name)
    wait_for(f"the answer to the last bind of {name}", lambda: "" in bind_calls(stage, uid), 10)
    seen = [b.status for b in proxy.bindings(name)]
    check(seen == statuses, f"{name}: the API server answered {seen} to its Bindings, not {statuses}")
    calls = bind_calls(stage, uid)
    check(len(calls) == failures + 1 and all(calls[:-1]), f"{name}: kube-scheduler was told {calls}")


def faulty_bindings(env):
    """Whatever becomes of a Binding or of its answer: the pod is bound, once, and the books are right."""
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "faulty", 8), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        for name in CASES:
            check_case(stage, proxy, name)
        check_devices(stage)
        draw = random.Random(1)
        faults = [fault for _ in range(20) for fault in CASES[draw.choice(sorted(CASES))][0]]
        proxy.next_bindings(*faults)
        uids = {f"mixed-{i:02d}": stage.create(objects.pod(f"mixed-{i:02d}", 1)) for i in range(40)}
        wait_all_bound(stage, uids, 90)
        check_devices(stage)
        for name, uid in uids.items():
            check(len(taken(proxy, uid)) == 1, f"{name} was bound {len(taken(proxy, uid))} times")
        return f"{len(CASES)} faults one by one, then {len(faults)} among {len(proxy.bindings())} Bindings"


def refused_for_good(env):
    """A pod whose Binding is always refused gives its GPUs back: another pod gets them, and it has its turn later."""
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "one", 1), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        proxy.bindings_of("refused", Fault(answer=409))
        uid = stage.create(objects.pod("refused", 8))
        wait_for("a refused Binding", lambda: any(bind_calls(stage, uid)), 20)
        stage.create(objects.pod("other", 8))
        stage.wait_bound("other")
        check_devices(stage)
        proxy.bindings_of("refused", None)
        stage.api.delete(f"{PODS}/other")
        stage.wait_bound("refused")
        check_devices(stage)
        return f"refused {len([e for e in bind_calls(stage, uid) if e])} times, then bound"


def slow_binding(env):
    """A Binding slower than kube-scheduler's patience: nothing is taken twice, and the pod is where it went."""
    entry = {**BINDS, "httpTimeout": "2s"}
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "slow", 2), live=True, extender_entry=entry,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        held = threading.Event()
        proxy.next_bindings(Fault(hold_before=held))
        uid = stage.create(objects.pod("slow", 8))
        wait_for("the Binding", proxy.bindings, 10)
        # kube-scheduler has given up meanwhile and tries again.
        wait_for("another bind call", lambda: any("is being bound" in e for e in bind_calls(stage, uid)), 30)
        stage.create(objects.pod("next", 8))
        check(stage.wait_bound("next") != proxy.bindings("slow")[0].node, "the place of a Binding on its way was given away")
        held.set()
        check(stage.wait_bound("slow") == proxy.bindings("slow")[0].node, "the pod is not where its Binding went")
        check_devices(stage)
        check(len(taken(proxy, uid)) == 1, f"bound {len(taken(proxy, uid))} times")
        return f"{len(bind_calls(stage, uid))} bind calls were turned away while the Binding was on its way"


def recreate(stage, name, gpus):
    stage.api.delete(f"{PODS}/{name}")
    return stage.create(objects.pod(name, gpus))


def deleted_while_binding(env):
    """A pod that is deleted and created again while its Binding, or the answer to it, is on its way."""
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "deleted", 1), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        held = threading.Event()
        proxy.next_bindings(Fault(hold_before=held))
        old = stage.create(objects.pod("early", 2))
        wait_for("its Binding", lambda: proxy.bindings("early"), 20)
        new = recreate(stage, "early", 3)
        stage.wait_bound("early")
        held.set()
        wait_for("the answer to the old one's bind", lambda: bind_calls(stage, old), 20)
        check(proxy.bindings("early")[0].status == 409, f"the old one's Binding: {proxy.bindings('early')[0].status}")
        check(all(bind_calls(stage, old)), "kube-scheduler was told that the old one is bound")
        check(stage.pod("early")["metadata"]["uid"] == new, "the new one is gone")
        check(check_devices(stage) == 3, "not 3 GPUs are in use")

        held = threading.Event()
        proxy.next_bindings(Fault(hold_after=held))
        old = stage.create(objects.pod("late", 2))
        stage.wait_bound("late")
        recreate(stage, "late", 1)
        stage.wait_bound("late")
        # The extender has heard of the deletion before it hears that the Binding was done.
        check(check_devices(stage) == 4, "not 4 GPUs are in use")
        held.set()
        wait_for("the answer to the old one's bind", lambda: bind_calls(stage, old), 20)
        check(check_devices(stage) == 4, "not 4 GPUs are in use")
        return "nothing is left of the old ones"


def late_list(env):
    """Pods that are bound while a list is on its way that does not show them: nothing of theirs is given away."""
    with FaultProxy(env) as proxy, Stage(env, dgx_nodes(env, "late", 1), live=True, extender_entry=BINDS,
                                         kubeconfig=proxy.kubeconfig(env)) as stage:
        proxy.expire_watch()
        proxy.pod_lists.close()
        proxy.pod_watches.close()
        proxy.cut()
        proxy.mend()
        wait_for("a list of pods", lambda: proxy.pod_lists.waiting, 20)
        stage.create(objects.pod("during", 1))
        stage.wait_bound("during")
        proxy.pod_lists.open()
        wait_for("the watch that follows the list", lambda: proxy.pod_watches.waiting, 20)
        stage.create(objects.pod("next", 1))
        stage.wait_bound("next")
        check(check_devices(stage) == 2, "not 2 GPUs are in use")
        proxy.pod_watches.open()
        stage.api.delete(f"{PODS}/during")
        check(check_devices(stage) == 1, "not one GPU is in use")
        return "two pods bound between a list and its watch"


class Account:
    """A service account that may do everything, and a file with a token of it."""

    def __init__(self, env, name):
        self._env = env
        self._name = name
        self.file = os.path.join(env.plane.dir, name + ".token")
        self.create()
        env.plane.api.post(GRANTS, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})

    def create(self):
        self._env.plane.api.post(ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self._name}})

    def delete(self):
        self._env.plane.api.delete(f"{ACCOUNT}/{self._name}")

    def write_token(self):
        """A new token, put in the place of the old one as kubelet does."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        token = self._env.plane.api.post(f"{ACCOUNT}/{self._name}/token", request)["status"]["token"]
        with open(self.file + ".new", "w", encoding="utf-8") as f:
            f.write(token)
        os.replace(self.file + ".new", self.file)
        return token


def replaced_token(env):
    """The extender's token is replaced while it runs; while none is good, nothing is lost, and the next good one is used."""
    account = Account(env, "rotated")
    tokens = [account.write_token()]
    with FaultProxy(env) as proxy:
        kubeconfig = proxy.kubeconfig(env, account.file)
        with Stage(env, dgx_nodes(env, "token", 2), live=True, extender_entry=BINDS, kubeconfig=kubeconfig) as stage:
            def bound_with(name, token):
                stage.create(objects.pod(name, 1))
                stage.wait_bound(name)
                check(proxy.bindings(name)[-1].token == token, f"{name} was not bound with the token in the file")
            bound_with("first", tokens[0])
            tokens.append(account.write_token())
            bound_with("second", tokens[1])

            account.delete()
            # The API server believes a token for some seconds more.
            wait_for("the tokens to be refused", lambda: proxy.asks_with(tokens[1]) == 401, 30, 0.5)
            proxy.cut()  # what goes on by itself, too, must ask again
            proxy.mend()
            uids = [stage.create(objects.pod(f"waits-{i}", 2)) for i in range(3)]
            for uid in uids:
                wait_for("a bind call", lambda u=uid: bind_calls(stage, u), 20)
                check(all("401" in e for e in bind_calls(stage, uid)), f"without a token: {bind_calls(stage, uid)}")
            wait_for("refused watches", lambda: 401 in proxy.statuses("/api/v1/pods"), 20)
            check(check_devices(stage) == 2, "not 2 GPUs are in use while no token is good")
            check(stage.readyz(stage.admin_port)[0] == 200, "not ready: " + stage.readyz(stage.admin_port)[1])
            stage.api.delete(f"{PODS}/first")

            account.create()
            tokens.append(account.write_token())
            for i in range(3):
                stage.wait_bound(f"waits-{i}", 60)
            check(proxy.bindings()[-1].token == tokens[2], "the last pod was not bound with the new token")
            used = check_devices(stage, 60)
            check(used == 7, f"{used} GPUs are in use")
    return f"{len(proxy.statuses('/api/v1/pods'))} lists and watches of pods, {proxy.statuses('/api/v1/pods').count(401)} refused"
