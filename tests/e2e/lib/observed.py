"""Scenarios in which somebody sees which devices pods hold, and they are not those that were foreseen."""

import http.server
import json
import os
import threading
import time

from lib import http_reply, objects
from lib.books import BINDS, check
from lib.custom_types import CustomType, Served
from lib.procs import wait_for
from lib.stage import PODS, Stage

ROW = objects.v100("seen")


def report_type():
    """The part of the published type that matters here."""
    texts = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}
    amounts = {"x-kubernetes-int-or-string": True}
    resource = {"type": "object", "properties": {"name": {"type": "string"}, "capacity": amounts, "allocatable": amounts,
                                                 "available": amounts}}
    zone = {"type": "object", "properties": {"name": {"type": "string"}, "type": {"type": "string"},
                                             "resources": {"type": "array", "items": resource}}}
    schema = {"type": "object", "properties": {"attributes": {"type": "array", "items": texts},
                                               "zones": {"type": "array", "items": zone}}}
    return CustomType("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology", "Cluster", schema,
                      "https://github.com/kubernetes/enhancements/pull/1870")


REPORT = report_type()


def report(available):
    """What the node's agent writes; `available` GPUs of each NUMA node."""
    def zone(numa, gpus):
        return {"name": f"node-{numa}", "type": "Node",
                "resources": [{"name": objects.GPU, "capacity": 4, "allocatable": 4, "available": gpus}]}
    return {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": ROW["sn"]},
            "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"},
                           {"name": "topologyManagerScope", "value": "pod"}],
            "zones": [zone(numa, gpus) for numa, gpus in enumerate(available)]}


def run_pod(stage, gpus, name, seconds_ago=5):
    """Binds a pod and says what kubelet says once it has devices: that it has started, some seconds ago."""
    stage.create(objects.pod(name, gpus))
    stage.wait_bound(name)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))
    stage.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "startTime": started}})


def other_devices_than_predicted(env):
    """What a node's agent reports wins over what was foreseen, and tells a restarted extender what pods hold."""
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "seen.csv"), [ROW])
    mismatches = 'mortise_prediction_mismatch_total{source="nrt"}'
    with Served(env.plane.api, REPORT), Stage(env, cluster, live=True, node_metadata=objects.ALIGNED, extender_entry=BINDS) as stage:
        stage.api.post(REPORT.path, report((4, 4)))
        wait_for("the extender to have the report",
                 lambda: 'mortise_watch_events_total{resource="topology reports"} 1' in stage.metrics())
        run_pod(stage, 2, "a")
        run_pod(stage, 2, "b")
        # Foreseen: both on NUMA node 0, so that four GPUs of node 1 are free.
        check(stage.told_of("seen")["last_observed"] is None, "something was observed before anything was told")
        stage.api.patch(f"{REPORT.path}/seen", report((2, 2)))
        wait_for("the mismatch to be counted", lambda: stage.metric(mismatches) == 1)
        told = stage.told_of("seen")["last_observed"]
        check(told["source"] == "nrt" and told["mismatch"], f"/v1/nodes tells {told}")
        stage.create(objects.pod("four", 4))
        condition = stage.wait_refused("four")
        check("TopologyAffinity" in condition["message"], f"refused with {condition['message']!r}")

        # The other way round: b leaves, and a turns out to be on NUMA node 1.
        for name in ("four", "b"):
            stage.api.delete(f"{PODS}/{name}")
            stage.wait_gone(name)
        stage.api.patch(f"{REPORT.path}/seen", report((4, 2)))
        wait_for("one state to be left", lambda: stage.told_of("seen")["states_believed"]["count"] == 1)
        run_pod(stage, 4, "again")

        stage.kill_extender()
        before = stage.told_of("seen")["states_believed"]["count"]
        check(before > 1, f"{before} states are believed after the restart, and nobody told which")
        stage.create(objects.pod("early", 2))
        stage.wait_refused("early")  # the two that are free may be one on each NUMA node
        stage.api.delete(f"{PODS}/early")
        stage.wait_gone("early")
        # Kubelet filled node 0 with the four; the first pod is still on node 1.
        stage.api.patch(f"{REPORT.path}/seen", report((0, 2)))
        wait_for("one state to be left", lambda: stage.told_of("seen")["states_believed"]["count"] == 1)
        stage.create(objects.pod("pair", 2))
        stage.wait_bound("pair")
        return f"1 mismatch; {before} states after kill -9, 1 with the report"


class FakePrometheus:
    """Answers every query with the same series: (pod, GPU) of the node, scraped just now."""

    def __init__(self, series):
        def answer():
            result = [{"metric": {"Hostname": ROW["sn"], "gpu": str(gpu), "namespace": "default", "pod": pod},
                       "value": [time.time(), str(time.time())]} for pod, gpu in series]
            return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

        class Handler(http_reply.Handler):
            def do_GET(self):
                self.reply(200, answer() if self.path.startswith("/prom/api/v1/query?query=timestamp") else b"{}")

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/prom"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def devices_seen_by_dcgm(env):
    """DCGM series tell a restarted extender the devices of a pod."""
    cluster = objects.write_cluster(os.path.join(env.plane.dir, "dcgm.csv"), [ROW])
    with FakePrometheus([("three", gpu) for gpu in (4, 5, 7)]) as prometheus:
        with Stage(env, cluster, live=True, node_metadata=objects.ALIGNED, extender_entry=BINDS,
                   extender_args=["--dcgm-query-url", prometheus.url]) as stage:
            run_pod(stage, 3, "three", seconds_ago=60)
            stage.kill_extender()  # a new one asks at once
            free = [1000] * 4 + [0, 0, 1000, 0]
            wait_for("the devices to be on record", lambda: stage.told_of("seen")["free_milli_gpu_by_device"] == free)
            told = stage.told_of("seen")
            check(told["states_believed"]["count"] == 1, f"/v1/nodes tells {told['states_believed']}")
            check(told["last_observed"]["source"] == "dcgm", f"/v1/nodes tells {told['last_observed']}")
            stage.create(objects.pod("four", 4))
            stage.wait_bound("four")
            return told["last_observed"]["what"]
