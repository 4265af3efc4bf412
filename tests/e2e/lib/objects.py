"""Cluster files and the Kubernetes objects made from them."""

import csv

from lib.procs import E2EError

GPU = "nvidia.com/gpu"
COLUMNS = ["sn", "cpu_milli", "memory_mib", "gpu", "model"]
# Of a node that v100() describes: two NUMA nodes of four GPUs, and kubelet gives a pod those of one of them only.
ALIGNED = {"labels": {"nvidia.com/gpu.machine": "NVIDIA-DGX-1-with-V100", "nvidia.com/gpu.count": "8"},
           "annotations": {"mortise.dev/kubelet": "policy=single-numa-node,scope=pod"}}


def a100(name, gpus=8):
    """The row of a machine of which nothing but the count of GPUs matters."""
    return {"sn": name, "cpu_milli": 96000, "memory_mib": 786432, "gpu": gpus, "model": "NVIDIA-A100-SXM4-40GB" if gpus else ""}


def v100(name):
    """The row of a machine of eight GPUs."""
    return {"sn": name, "cpu_milli": 78000, "memory_mib": 400000, "gpu": 8, "model": "Tesla-V100-SXM2-32GB"}


def read_cluster(path):
    """The rows of a cluster file, numbers as int."""
    with open(path, newline="", encoding="utf-8") as f:
        reader = csv.DictReader(f)
        if reader.fieldnames != COLUMNS:
            raise E2EError(f"{path}: columns {reader.fieldnames}, expected {COLUMNS}")
        return [{k: v if k in ("sn", "model") else int(v) for k, v in row.items()} for row in reader]


def write_cluster(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def node(row, metadata=None):
    """The Node that kubelet, the device plugin and GPU Feature Discovery would publish for a row. `metadata` has more
    labels and annotations."""
    resources = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
    labels = {"kubernetes.io/hostname": row["sn"], "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if row["gpu"]:
        resources[GPU] = str(row["gpu"])
    if row["model"]:
        labels["nvidia.com/gpu.product"] = row["model"]
    labels.update((metadata or {}).get("labels", {}))
    annotations = (metadata or {}).get("annotations", {})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": row["sn"], "labels": labels, "annotations": annotations},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]}}


def pod(name, gpus=0, cpu_milli=1000, memory_mib=1024, annotations=None, priority_class=None):
    """A pod of one container. cpu_milli and memory_mib are per GPU, or for the pod when it has none."""
    scale = max(gpus, 1)
    resources = {"cpu": f"{cpu_milli * scale}m", "memory": f"{memory_mib * scale}Mi"}
    if gpus:
        resources[GPU] = str(gpus)
    container = {"name": "main", "image": "none.invalid/none", "resources": {"requests": resources, "limits": resources}}
    spec = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}


def priority_class(name, value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
