"""A fleet on a real control plane, scraped by a real Prometheus through the agent: rules fire, every panel has rows."""

import json

import pytest

from tests.consumers.agent import scraping, serving
from tests.consumers.prometheus import running_prometheus
from tests.e2e.fleet import apply, cel, claim_template, deployment, devices_of, pod, running
from tests.e2e.support import eventually

FIELDS = "default,ecc,nvlink,violations,clock-events"
INSTANCE = claim_template(
    "part",
    {"deviceClassName": "mig.nvidia.com", **cel("device.attributes['gpu.nvidia.com'].profile == '1g.10gb'")},
)
WHOLE = claim_template("whole", {})
FAULTS = {
    # One GPU each; what is told of it at once or, where an alert waits, as pending.
    ("xid",): {"GPUXidNeedsPowerCycle", "GPULost"},
    ("xid", "--code", "154"): {"GPUXidRecoveryAnnounced"},
    ("gpu-lost",): {"GPULost"},
    ("nvlink-down",): {"GPUXidNeedsReset", "GPUNVLinkErrors"},
    ("ecc",): {"GPUXidNeedsReset", "GPUDoubleBitError"},
    ("ecc", "--type", "correctable"): {"GPUSingleBitErrors"},
    ("ecc", "--type", "row-remap-pending"): {"GPUXidNotice", "GPURowRemapPending"},
    ("ecc", "--type", "row-remap-failure"): {"GPUXidNeedsReset", "GPURowRemapPending", "GPURowRemapFailure"},
    # What lowers the clocks makes the GPU slower than its peers.
    ("thermal",): {"GPUThermalThrottling", "GPUStraggler"},
    ("power",): {"GPUPowerThrottling", "GPUStraggler"},
    ("slow",): {"GPUStraggler"},
    ("pcie",): {"GPUPcieReplays"},
}


def gpu_of(node, device):
    """What an alert says of a device: node and index."""
    return node, device.split("-")[1]


@pytest.fixture
def busy(empty):
    """Three nodes that are used: one GPU of node-2 is split, and pods hold half of the rest."""
    empty.ghost("add-pool", "--count", "3")
    empty.ghost("mig-split", "node-2/gpu-0", "--profiles", "3g.40gb,1g.10gb*2")
    work = pod("train", template="whole")
    work["metadata"]["annotations"] = {"kubectl-ghost.dev/gpu-util": "95"}
    apply(empty, WHOLE, INSTANCE, deployment(work, 12), pod("infer", template="part"))
    running(empty, "train", 12)
    running(empty, "infer")
    return empty


def told(server):
    """(node, GPU, alert) of everything that fires or is about to."""
    return {
        (labels["Hostname"], labels.get("gpu", ""), labels["alertname"])
        for state in ("firing", "pending")
        for labels in server.alerts(state)
    }


def all_seen(server):
    """Every GPU and instance has been scraped twice."""
    rows = server.query("count(count_over_time(DCGM_FI_DEV_GPU_TEMP[1m]) >= 2)")
    return [row["value"][1] for row in rows] == ["26"]


def test_alerts_fire_for_what_is_broken_and_for_nothing_else(busy, rules, tmp_path):
    whole = devices_of(busy, "train")
    assert len(whole) == 12
    with (
        serving(busy, "--fields", FIELDS) as port,
        running_prometheus(tmp_path, scraping(port, str(rules))) as server,
    ):
        eventually(lambda: all_seen(server))
        assert told(server) == set()

        expected = set()
        for (node, device), (fault, alerts) in zip(whole, FAULTS.items(), strict=True):
            busy.ghost("fault", *fault, f"{node}/{device}")
            expected |= {(*gpu_of(node, device), alert) for alert in alerts}
        eventually(lambda: told(server) == expected, 120)
        firing = {labels["alertname"] for labels in server.alerts()}
        assert {"GPUXidNeedsPowerCycle", "GPUXidNeedsReset", "GPUDoubleBitError"} <= firing

        busy.ghost("fault", "xid", "--code", "13", "node-2/gpu-0")
        expected.add(("node-2", "0", "GPUXidApplicationError"))
        eventually(lambda: told(server) == expected, 60)


def test_a_node_that_crashes_is_told_of_as_a_node(busy, rules, tmp_path):
    with (
        serving(busy, "--fields", FIELDS) as port,
        running_prometheus(tmp_path, scraping(port, str(rules))) as server,
    ):
        eventually(lambda: all_seen(server))
        busy.ghost("fault", "driver-crash", "node-1")
        eventually(lambda: told(server) == {("node-1", "", "GPUNodeSilent")}, 60)


def substituted(expression):
    """A panel's query as Grafana would send it with everything chosen."""
    for variable in ("$node", "$model", "$namespace"):
        expression = expression.replace(variable, ".*")
    return expression.replace("$__rate_interval", "1m").replace("$__range", "1h")


def test_every_query_of_the_dashboard_has_rows(busy, rules, tmp_path):
    dashboard = json.loads(busy.ghost("metrics", "dashboard").stdout)
    broken = "/".join(devices_of(busy, "train")[0])
    with (
        serving(busy, "--fields", FIELDS) as port,
        running_prometheus(tmp_path, scraping(port, str(rules))) as server,
    ):
        eventually(lambda: all_seen(server))
        busy.ghost("fault", "xid", broken)
        eventually(lambda: bool(server.alerts()), 60)
        queries = {
            (panel["id"], panel["title"], target["refId"]): target["expr"]
            for panel in dashboard["panels"]
            for target in panel.get("targets", ())
        }
        assert len(queries) == 40
        empty_ones = {name: query for name, query in queries.items() if not server.query(substituted(query))}
        assert empty_ones == {}

        numbers = {
            panel["title"]: server.query(substituted(panel["targets"][0]["expr"]))
            for panel in dashboard["panels"]
            if panel["type"] == "stat"
        }
        assert all(len(rows) == 1 for rows in numbers.values())
        values = {title: float(rows[0]["value"][1]) for title, rows in numbers.items()}
        # 24 GPUs, one of which is off the bus; its pod has moved to another one, and one holds an instance.
        assert (values["GPUs"], values["Held"], values["Free"], values["With an XID"]) == (23, 13, 10, 1)
        assert values["Utilisation of held"] > values["Utilisation"] > 0
        for variable in dashboard["templating"]["list"][1:]:
            series, label = variable["query"]["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
            found = {row["metric"].get(label, "") for row in server.query(substituted(series))} - {""}
            assert (
                found
                == {
                    "node": {"node-0", "node-1", "node-2"},
                    "model": {"NVIDIA H100 80GB HBM3"},
                    "namespace": {"default"},
                }[variable["name"]]
            )
