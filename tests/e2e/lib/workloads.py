"""The workloads of config/examples and the pods that their controllers make of them: the marks by which pods are known as a gang,
and all that the templates say."""

import copy
import os

from lib.custom_types import CustomType
from lib.shipped import ROOT, yaml

EXAMPLES = os.path.join(ROOT, "config", "examples")
PYTORCH_JOB = CustomType("kubeflow.org", "v1", "PyTorchJob")
LEADER_WORKER_SET = CustomType("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
POD_GROUP = CustomType("scheduling.x-k8s.io", "v1alpha1", "PodGroup")
VOLCANO_POD_GROUP = CustomType("scheduling.volcano.sh", "v1beta1", "PodGroup")
KAI_POD_GROUP = CustomType("scheduling.run.ai", "v2alpha2", "PodGroup")


def example(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        return yaml.safe_load(f)


def owned_by(owner):
    """The reference that a controller gives its pods."""
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True}


def of_template(template, name, labels=None, annotations=None, owner=None):
    """A pod of a controller's template. The test bed's scheduler has the default name, and no kubelet ends its pods."""
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template)}
    metadata = pod.setdefault("metadata", {})
    metadata["name"] = name
    metadata["labels"] = {**metadata.get("labels", {}), **(labels or {})}
    metadata["annotations"] = {**metadata.get("annotations", {}), **(annotations or {})}
    if owner:
        metadata["ownerReferences"] = [owned_by(owner)]
    pod["spec"].pop("schedulerName", None)
    pod["spec"].update(automountServiceAccountToken=False, terminationGracePeriodSeconds=0)
    return pod


def pytorch_pods(job, labels=None):
    """As Kubeflow's training operator makes them, of the object that the API server has; masters first."""
    name = job["metadata"]["name"]
    pods = []
    for role, replica in sorted(job["spec"]["pytorchReplicaSpecs"].items()):
        for i in range(replica["replicas"]):
            marks = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/operator-name": "pytorchjob-controller",
                     "training.kubeflow.org/replica-type": role.lower(), "training.kubeflow.org/replica-index": str(i)}
            if role == "Master":
                marks["training.kubeflow.org/job-role"] = "master"
            pods.append(of_template(replica["template"], f"{name}-{role.lower()}-{i}", {**marks, **(labels or {})}, owner=job))
    return pods


def volcano_pods(job, group):
    """As Volcano's controllers make them, of a Volcano Job that nobody has to serve, for a PodGroup of that name."""
    name = job["metadata"]["name"]
    pods = []
    for task in job["spec"]["tasks"]:
        for i in range(task["replicas"]):
            marks = {"scheduling.k8s.io/group-name": group, "volcano.sh/job-name": name, "volcano.sh/task-spec": task["name"],
                     "volcano.sh/task-index": str(i)}
            pods.append(of_template(task["template"], f"{name}-{task['name']}-{i}", annotations=marks))
    return pods


def volcano_group(job, group):
    """The PodGroup of a Volcano Job."""
    spec = job["spec"]
    minima = {task["name"]: task.get("minAvailable", task["replicas"]) for task in spec["tasks"]}
    return VOLCANO_POD_GROUP.object(group, {"minMember": spec["minAvailable"], "minTaskMember": minima, "queue": spec["queue"],
                                            "networkTopology": spec["networkTopology"]})


def leader_worker_pods(workload):
    """As LeaderWorkerSet's controller and webhook leave them: the leader of each replica, and its workers."""
    prefix = "leaderworkerset.sigs.k8s.io/"
    name = workload["metadata"]["name"]
    template = workload["spec"]["leaderWorkerTemplate"]
    leaders, workers = [], []
    for group in range(workload["spec"]["replicas"]):
        leader = f"{name}-{group}"
        marks = {prefix + "name": name, prefix + "group-index": str(group), prefix + "group-key": f"key-of-{leader}",
                 prefix + "template-revision-hash": "5f6d"}
        size = {prefix + "size": str(template["size"])}
        leaders.append(of_template(template["leaderTemplate"], leader, {**marks, prefix + "worker-index": "0"}, size))
        for i in range(1, template["size"]):
            workers.append(of_template(template["workerTemplate"], f"{leader}-{i}", {**marks, prefix + "worker-index": str(i)},
                                       {**size, prefix + "leader-name": leader}))
    return leaders, workers
