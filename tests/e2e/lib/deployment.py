"""Scenarios of what config/kube ships: its manifests, and who may write the annotations that say who holds which GPU."""

import http.client
import json
import os

from lib import objects, shipped
from lib.api import Api, ApiError
from lib.books import ASSIGNED, DECISION, check, dgx_nodes, wait_used
from lib.procs import E2EError, wait_for
from lib.shipped import EXTENDER, KUBE, SCHEDULER, SYSTEM, yaml
from lib.stage import PODS, Stage

ADMISSION = os.path.join(KUBE, "admission")
FORMS = [os.path.join(KUBE, "base"), os.path.join(KUBE, "overlays", "static-pod-scheduler")]
GANG_SLOT = "mortise.dev/gang-slot"


# manifests

# Of the extender's account: verb, group, resource, subresource, namespace, name, whether it may.
RIGHTS = [
    ("watch", "", "nodes", "", "", "", True),
    ("list", "", "pods", "", "", "", True),
    ("list", "topology.node.k8s.io", "noderesourcetopologies", "", "", "", True),
    ("watch", "resource.k8s.io", "resourceclaims", "", "", "", False),
    ("create", "", "pods", "binding", "default", "", True),
    ("create", "", "pods", "eviction", "default", "", True),
    ("get", "coordination.k8s.io", "leases", "", SYSTEM, EXTENDER, True),
    ("create", "coordination.k8s.io", "leases", "", SYSTEM, "", True),
    ("update", "coordination.k8s.io", "leases", "", SYSTEM, EXTENDER, True),
    ("patch", "coordination.k8s.io", "leases", "", SYSTEM, EXTENDER, False),
    ("update", "coordination.k8s.io", "leases", "", SYSTEM, SCHEDULER, False),
    ("update", "coordination.k8s.io", "leases", "", "kube-system", "kube-scheduler", False),
    ("patch", "", "pods", "", "default", "", True),
    ("update", "", "pods", "", "default", "", False),
    ("create", "", "configmaps", "", "default", "", True),
    ("get", "", "configmaps", "", "default", "mortise-gang-1", True),
    ("delete", "", "configmaps", "", "default", "mortise-gang-1", True),
    ("list", "", "configmaps", "", "default", "", False),
    ("update", "", "configmaps", "", "default", "mortise-gang-1", False),
    ("watch", "scheduling.x-k8s.io", "podgroups", "", "", "", True),
    ("update", "scheduling.x-k8s.io", "podgroups", "", "default", "", False),
    ("delete", "", "pods", "", "default", "", False),
    ("patch", "", "nodes", "", "", "", False),
    ("get", "", "secrets", "", SYSTEM, "", False),
]


def check_rights(api):
    for verb, group, resource, subresource, namespace, name, allowed in RIGHTS:
        review = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{SYSTEM}:{EXTENDER}", "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
                "name": name}}})
        check(review["status"]["allowed"] == allowed,
              f"the extender may {'' if not allowed else 'not '}{verb} {resource} {subresource} {name} in {namespace or 'all'}")


def check_taken(env, directory):
    """The API server takes every object as it is, and has nothing to warn of, such as pods below the namespace's security
    standard; how many."""
    said = env.kubectl("apply", "--dry-run=server", "--warnings-as-errors", "-k", directory).splitlines()
    check(said and all("server dry run" in line for line in said), f"{directory}: {said}")
    return len(said)


def check_static_pod_config():
    """The overlay's configuration differs from the base's in what it says it does, and in nothing else."""
    with open(os.path.join(FORMS[1], "scheduler-config.yaml"), encoding="utf-8") as f:
        overlay = yaml.safe_load(f)
    base = shipped.load_scheduler_config()
    for config in (base, overlay):
        config["leaderElection"] = {"leaderElect": config["leaderElection"]["leaderElect"]}
        config["clientConnection"].pop("kubeconfig", None)
        del config["profiles"][0]["schedulerName"]
        scheme = config["extenders"][0].pop("urlPrefix").split(":", 1)[0]
        tls = config["extenders"][0].pop("tlsConfig", {})
        named = {"serverName", "caFile", "certFile", "keyFile"} if scheme == "https" else set()
        check(set(tls) == named, f"{scheme} with tlsConfig {tls}")
    check(base == overlay, f"the overlay's scheduler-config.yaml {overlay} differs from the base's {base}")


def differences(wanted, got, path=""):
    """Where what was loaded does not have what was wanted. kube-scheduler fills in defaults, and leaves false out."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return [d for key, value in wanted.items() for d in differences(value, got.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        return [d for i, value in enumerate(wanted) for d in differences(value, got[i], f"{path}[{i}]")]
    same = wanted == got or (wanted is False and got is None)
    return [] if same else [f"{path}: {wanted!r} is shipped, {got!r} is loaded"]


def loaded_config(scheduler):
    """What kube-scheduler says that it has loaded, at --v=2: an indented block of YAML."""
    text = scheduler.log_text().split('"Using component config" config=<\n', 1)[1]
    return yaml.safe_load(text.split("\n >", 1)[0].replace("\t", ""))


class Shipped(Stage):
    """The pod of config/kube/base as two processes: arguments, configuration and account are those of its Deployment, but
    for ports and paths."""

    tls = False

    def __init__(self, env, cluster):
        super().__init__(env, cluster, live=True)
        built = yaml.safe_load_all(env.kubectl("kustomize", FORMS[0]))
        spec = next(o for o in built if o["kind"] == "Deployment")["spec"]["template"]["spec"]
        check(spec["serviceAccountName"] == SCHEDULER, f"the pod runs under {spec['serviceAccountName']}")
        self.container = next(c for c in spec["containers"] if c["name"] == "mortise-extender")

    def _extender_argv(self, port, admin_port, kubeconfig=None):
        moved = {"--listen": f"127.0.0.1:{port}", "--admin": f"127.0.0.1:{admin_port}"}
        arguments = []
        for argument in self.container["args"]:
            flag, value = argument.split("=", 1)
            if value.startswith("/etc/mortise/"):
                value = self.env.certificates.path(os.path.basename(value))
            arguments += [flag, moved.get(flag, value)]
        return [self.env.extender_binary, "--kubeconfig", kubeconfig or self.env.scheduler_kubeconfig, *arguments]

    def scheduler_config(self):
        return shipped.placed_scheduler_config(self.env.scheduler_kubeconfig, f"http://127.0.0.1:{self.recorder.port}")

    def probe(self, kind):
        """The status that kubelet would get."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=10)
        return self._http(connection, "GET", self.container[kind]["httpGet"]["path"])[0]


def manifests(env):
    """This API server takes the base and the overlay as they are, and what the base runs binds a pod with its account."""
    check_rights(env.plane.api)
    check_static_pod_config()
    taken = sum(check_taken(env, form) for form in FORMS)
    with Shipped(env, dgx_nodes(env, "kube", 1)) as stage:
        wrong = differences(stage.scheduler_config(), loaded_config(stage.scheduler))
        check(not wrong, f"kube-scheduler has not loaded what is shipped: {'; '.join(wrong)}")
        for kind in ("livenessProbe", "readinessProbe"):
            check(stage.probe(kind) == 200, f"{kind} of the extender: {stage.probe(kind)}")
        pod = objects.pod("one", 1)
        pod["spec"]["schedulerName"] = "mortise"
        stage.create(pod)
        stage.wait_bound("one")
        devices = stage.pod("one")["metadata"]["annotations"][ASSIGNED]
        for lease in (SCHEDULER, EXTENDER):
            held = stage.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{lease}")["spec"]
            check(held.get("holderIdentity"), f"nobody holds the Lease {lease}: {held}")
        return f"{taken} objects taken; bound with {devices}"


# other-schedulers

def other_schedulers(env):
    """With --scheduler-name a pod of another scheduler is bound where that one wants it, and counts."""
    with Stage(env, dgx_nodes(env, "other", 2), live=True, extender_args=("--scheduler-name", "mortise")) as stage:
        uid = stage.create(objects.pod("theirs", 3))
        node = stage.wait_bound("theirs")
        passed = stage.recorder.exchanges("filter", uid)[-1].answer["NodeNames"]
        check(sorted(passed) == ["other-00", "other-01"], f"a pod of another scheduler passes on {passed} only")
        check(ASSIGNED not in stage.pod("theirs")["metadata"].get("annotations", {}), "it was told its devices")
        wait_used(stage, 3)
        return f"bound to {node} without devices, and counted"


# forged-annotations

def with_annotation(pod, key, value):
    pod["metadata"]["annotations"] = {key: value}
    return pod


def check_unprotected(stage, node):
    """Without the policy: what a pending pod says is not looked at; what a bound one says costs it what it asked for."""
    everything = json.dumps({"main": [str(i) for i in range(8)]})
    stage.create(with_annotation(objects.pod("pending", 1), ASSIGNED, everything))
    stage.wait_bound("pending")
    told = json.loads(stage.pod("pending")["metadata"]["annotations"][ASSIGNED])
    check(len(told["main"]) == 1, f"a pod of one GPU was bound with {told}")
    wait_used(stage, 1)
    for name, value in (("greedy", everything), ("odd", "not JSON"), ("elsewhere", '{"main":["71"]}')):
        bound = with_annotation(objects.pod(name, 1), ASSIGNED, value)
        bound["spec"]["nodeName"] = node
        stage.create(bound)
    # Four pods of one GPU each hold four; the other four are there to be had.
    wait_used(stage, 4)
    stage.create(objects.pod("rest", 4))
    stage.wait_bound("rest")
    wait_used(stage, 8)
    stage.api.delete(PODS)
    wait_used(stage, 0)


def refusal(what, call):
    """The text with which the policy refuses a call."""
    try:
        call()
    except ApiError as error:
        check(error.status == 403 and "only mortise-extender may" in str(error), f"{what}: {error}")
        return str(error)
    raise E2EError(f"{what} was let through")


def is_protected(api):
    try:
        api.post(f"{PODS}?dryRun=All", with_annotation(objects.pod("forged"), ASSIGNED, "{}"))
        return False
    except ApiError:
        return True


def tenant_api(env):
    """Of a user who may do with the pods of the namespace what people usually may."""
    env.kubectl("create", "role", "tenant", "--verb=get,list,create,update,patch,delete", "--resource=pods")
    env.kubectl("create", "rolebinding", "tenant", "--role=tenant", "--user=tenant")
    api = Api(env.plane.api_port, env.plane.pki.ca, *env.plane.pki.client("tenant", "tenant"))
    wait_for("the tenant's rights", lambda: _may_list(api), 10)
    return api


def _may_list(api):
    try:
        return bool(api.get(PODS)["kind"])
    except ApiError:
        return False


def check_protected(stage, tenant, node):
    admin = stage.api
    refusals = 0
    for key in (ASSIGNED, GANG_SLOT, DECISION):
        refusal(f"a pod with {key}", lambda k=key: tenant.post(PODS, with_annotation(objects.pod("forged", 1), k, "{}")))
        refusals += 1
    tenant.post(PODS, objects.pod("honest", 2))
    stage.wait_bound("honest")
    path = f"{PODS}/honest"
    devices = stage.pod("honest")["metadata"]["annotations"][ASSIGNED]
    check(len(json.loads(devices)["main"]) == 2, f"the extender's own Binding was let through with {devices}")
    tenant.patch(path, {"metadata": {"annotations": {"note": "mine"}, "labels": {"a": "b"}}})
    patches = {"a change": {ASSIGNED: '{"main":["7"]}'}, "a removal": {ASSIGNED: None}, "an addition": {GANG_SLOT: "x"}}
    for what, annotations in patches.items():
        patch = {"metadata": {"annotations": annotations}}
        refusal(f"{what} by a tenant", lambda p=patch: tenant.patch(path, p))
        refusal(f"{what} of the status", lambda p=patch: admin.patch(path + "/status", p))
        refusals += 2
    check(stage.pod("honest")["metadata"]["annotations"][ASSIGNED] == devices, "the annotation is another one")

    other = objects.pod("other")
    other["spec"]["schedulerName"] = "nobody"
    admin.post(PODS, other)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "other"},
               "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    forged = with_annotation(json.loads(json.dumps(binding)), ASSIGNED, '{"main":["0"]}')
    refusal("a Binding with devices", lambda: admin.post(f"{PODS}/other/binding", forged))
    refusal("one of the old form", lambda: admin.post("/api/v1/namespaces/default/bindings", forged))
    admin.post(f"{PODS}/other/binding", binding)
    return refusals + 2


def forged_annotations(env):
    """Nobody but the extender writes who holds which GPU; where the policy is missing, a lie costs the liar only."""
    node = "forge-00"
    with Stage(env, dgx_nodes(env, "forge", 1), live=True) as stage:
        check_unprotected(stage, node)
        tenant = tenant_api(env)
        env.kubectl("apply", "-k", ADMISSION)
        try:
            wait_for("the policy to be in force", lambda: is_protected(env.plane.api), 30)
            refusals = check_protected(stage, tenant, node)
        finally:
            env.kubectl("delete", "-k", ADMISSION)
            wait_for("the policy to be gone", lambda: not is_protected(env.plane.api), 30)
        return f"{refusals} forgeries refused, the extender's Binding let through"
