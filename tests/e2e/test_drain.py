"""Drains and reboots against the real Eviction API, scheduler and node controllers."""

import json
import signal

import pytest

from tests.e2e.fleet import apply, deployment, objects, pod, running
from tests.e2e.support import eventually

DRAIN = ["drain", "node-0"]


@pytest.fixture
def two(empty):
    """Two nodes, the second closed at first, so that pods are on node-0."""
    empty.ghost("add-pool", "--count", "2", "--taint", "never")
    empty.ghost("cordon", "node-1")
    yield empty
    empty.kubectl("delete", "poddisruptionbudgets", "--all")


def budget(name, minimum):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{name}-budget"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": name}}},
    }


def daemon_set(name):
    made = deployment(pod(name), 1)
    del made["spec"]["replicas"]
    return {**made, "kind": "DaemonSet"}


def on(cluster, node):
    return sorted(
        item["metadata"]["name"] for item in objects(cluster, "pods", f"--field-selector=spec.nodeName={node}")
    )


def node_of(cluster, name="node-0"):
    return json.loads(cluster.kubectl("get", "node", name, "-o", "json").stdout)


def cordoned(cluster, name="node-0"):
    return node_of(cluster, name)["spec"].get("unschedulable", False)


def ready(cluster, name="node-0"):
    return {item["type"]: item["status"] for item in node_of(cluster, name)["status"]["conditions"]}["Ready"]


def declared(cluster, name="node-0"):
    return json.loads(node_of(cluster, name)["metadata"]["annotations"]["kubectl-ghost.dev/hardware"])


def test_a_budget_blocks_until_it_is_relaxed(two):
    apply(two, deployment(pod("web"), 2), budget("web", 2))
    running(two, "web", 2)
    eventually(lambda: objects(two, "poddisruptionbudgets")[0]["status"].get("currentHealthy") == 2)
    before = on(two, "node-0")
    two.ghost("uncordon", "node-1")
    done = two.ghost(*DRAIN, "--timeout", "3s", check=False)
    assert done.returncode == 1
    for name in before:
        assert f"evicting pod default/{name}\n" in done.stdout
        assert f'pods/"{name}" -n "default" (will retry after 1s): blocked by PodDisruptionBudget "web-budget"' in (
            done.stderr
        )
        assert f'pods/"{name}" -n "default": global timeout reached: 3s: blocked by PodDisruptionBudget' in done.stderr
    assert "node/node-0 drained" not in done.stdout
    assert cordoned(two)
    assert on(two, "node-0") == before
    apply(two, budget("web", 1))
    done = two.ghost(*DRAIN, "--timeout", "60s")
    assert done.stdout.startswith("node/node-0 already cordoned\n")
    assert done.stdout.endswith("node/node-0 drained\n")
    for name in before:
        assert f"pod/{name} evicted\n" in done.stdout
    assert on(two, "node-0") == []
    running(two, "web", 2)
    assert len(on(two, "node-1")) == 2
    assert two.ghost(*DRAIN).stdout == "node/node-0 already cordoned\nnode/node-0 drained\n"


def test_what_kubectl_would_refuse_is_refused_in_its_words(two):
    apply(two, daemon_set("agent"), pod("bare"), deployment(pod("scratch", volumes=[{"name": "v", "emptyDir": {}}]), 1))
    for name in ("bare", "scratch"):
        running(two, name)
    running(two, "agent", 2)
    before = on(two, "node-0")
    ours = two.ghost(*DRAIN, check=False)
    theirs = two.kubectl(*DRAIN, check=False)
    assert (ours.returncode, theirs.returncode) == (1, 1)
    reasons = [line for line in theirs.stderr.splitlines() if line.startswith("cannot delete")]
    assert len(reasons) == 3
    for reason in reasons:
        assert reason in ours.stderr
    assert on(two, "node-0") == before
    done = two.ghost(*DRAIN, "--ignore-daemonsets", "--force", "--delete-emptydir-data")
    assert "Warning: ignoring DaemonSet-managed Pods: default/agent-" in done.stderr
    assert "Warning: deleting Pods that declare no controller: default/bare" in done.stderr
    left = on(two, "node-0")
    assert len(left) == 1
    assert left[0].startswith("agent-")


def test_dry_runs_change_nothing(two):
    apply(two, deployment(pod("web"), 1))
    running(two, "web")
    version = node_of(two)["metadata"]["resourceVersion"]
    name = on(two, "node-0")[0]
    for mode, suffix in (("client", "(dry run)"), ("server", "(server dry run)")):
        done = two.ghost(*DRAIN, f"--dry-run={mode}")
        assert done.stdout == (
            f"node/node-0 cordoned {suffix}\nevicting pod default/{name} {suffix}\nnode/node-0 drained {suffix}\n"
        )
    assert on(two, "node-0") == [name]
    assert node_of(two)["metadata"]["resourceVersion"] == version


def test_a_node_of_others_is_left_to_kubectl(two):
    apply(two, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
    for command in ("drain", "cordon", "uncordon"):
        done = two.ghost(command, "node-0", "real", check=False)
        assert done.returncode == 1
        assert f"kubectl {command} real" in done.stderr
    assert not cordoned(two, "real")
    assert not cordoned(two)


def test_a_reboot_takes_the_node_away_and_brings_it_back_cordoned(two):
    apply(two, deployment(pod("web"), 1))
    running(two, "web")
    process = two.start(*DRAIN, "--reboot", "--reboot-time", "5s")
    eventually(lambda: ready(two) == "False")
    assert on(two, "node-0") == []
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.endswith("node/node-0 drained\nnode/node-0 rebooting\nnode/node-0 rebooted\n")
    assert "kubectl ghost uncordon node-0" in errors
    assert ready(two) == "True"
    assert cordoned(two)
    assert "reboot" not in declared(two)
    assert on(two, "node-0") == []
    assert two.ghost("uncordon", "node-0").stdout == "node/node-0 uncordoned\n"
    running(two, "web")
    assert len(on(two, "node-0")) == 1


def test_kill_9_while_it_reboots(two):
    command = [*DRAIN, "--reboot", "--reboot-time", "6s"]
    process = two.start(*command)
    eventually(lambda: ready(two) == "False")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    begun = declared(two)["reboot"]
    again = two.start(*command)
    assert [again.stdout.readline() for _ in range(3)] == [
        "node/node-0 already cordoned\n",
        "node/node-0 drained\n",
        "node/node-0 already rebooting\n",
    ]
    assert declared(two)["reboot"] == begun
    output, errors = again.communicate()
    assert (again.returncode, output) == (0, "node/node-0 rebooted\n"), errors
    assert "reboot" not in declared(two)
    assert ready(two) == "True"
    assert cordoned(two)


def test_a_reboot_that_nobody_waits_for(two):
    done = two.ghost(*DRAIN, "--reboot", "--reboot-time", "1s", "--wait=false")
    assert done.stdout.endswith("node/node-0 rebooting\n")
    eventually(lambda: ready(two) == "False")
    assert two.ghost(*DRAIN, "--reboot").stdout.endswith("node/node-0 already rebooting\nnode/node-0 rebooted\n")
    assert ready(two) == "True"


def test_a_reboot_cures_an_xid_and_no_failed_memory(two):
    faults = {"2": {"faults": [{"kind": "xid", "code": 79}]}, "3": {"faults": [{"kind": "row-remap-failure"}]}}
    text = json.dumps({**declared(two), "gpus": faults})
    two.kubectl("annotate", "node", "node-0", "--overwrite", f"kubectl-ghost.dev/hardware={text}")
    two.ghost(*DRAIN, "--reboot", "--reboot-time", "1s")
    assert declared(two)["gpus"] == {"3": faults["3"]}
