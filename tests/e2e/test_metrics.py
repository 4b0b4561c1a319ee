"""The metrics of a fleet on a real control plane: every way to a GPU is attributed, and what breaks shows at once."""

import contextlib
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.fleet import (
    apply,
    audit_mark,
    cel,
    claim_template,
    deployment,
    devices_of,
    objects,
    pod,
    running,
    tool_writes,
)
from tests.e2e.support import eventually

UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"


@contextlib.contextmanager
def serving(cluster, *flags):
    """`metrics serve` on a free port; gives the URL."""
    process = cluster.start("metrics", "serve", "--port", "0", *flags)
    try:
        said = process.stderr.readline()
        match = re.fullmatch(r"Serving on (http://localhost:\d+)/metrics; Ctrl-C ends it\n", said)
        assert match, said
        yield match[1]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def samples(text, name):
    """(labels, value) of every series of a metric."""
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return [(sample.labels, sample.value) for sample in families[name].samples] if name in families else []


def held(text, name=UTILIZATION):
    """(node, GPU, pod, container) of every series of a metric that has a pod."""
    return sorted(
        (labels["Hostname"], labels["gpu"], labels["pod"].split("-")[0], labels["container"])
        for labels, _ in samples(text, name)
        if "pod" in labels
    )


def printed(cluster, *flags):
    return cluster.ghost("metrics", "print", *flags).stdout


def test_a_pod_by_claim_and_one_by_device_plugin_and_what_is_recorded(empty):
    empty.ghost("add-pool", "--count", "1")
    apply(empty, claim_template("two", {"count": 2}), deployment(pod("claim", template="two"), 1))
    running(empty, "claim")
    with serving(empty) as url:
        assert held(get(f"{url}/metrics")) == [("node-0", "0", "claim", "main"), ("node-0", "1", "claim", "main")]
        (first, *_) = [labels for labels, _ in samples(get(f"{url}/metrics"), UTILIZATION) if "pod" in labels]
        assert (first["dra_driver_name"], first["dra_pool_name"], first["dra_device_name"]) == (
            "gpu.nvidia.com",
            "node-0",
            "gpu-0",
        )
        empty.kubectl("delete", "deployment", "claim")
        eventually(lambda: held(get(f"{url}/metrics")) == [])
        apply(empty, deployment(pod("counted", gpus=3), 1))
        running(empty, "counted")
        eventually(lambda: len(held(get(f"{url}/metrics"))) == 3)
        eventually(lambda: [recorded(item) for item in objects(empty, "pods")] == ["gpu-0,gpu-1,gpu-2"])
        # Whoever looks later reads what is recorded.
        assert [gpu for _, gpu, _, _ in held(printed(empty))] == ["0", "1", "2"]


def recorded(item):
    return item["metadata"].get("annotations", {}).get("kubectl-ghost.dev/gpus")


def test_read_only_and_print_write_nothing(empty):
    empty.ghost("add-pool", "--count", "1")
    apply(empty, deployment(pod("counted", gpus=1), 1))
    running(empty, "counted")
    mark = audit_mark(empty)
    with serving(empty, "--read-only") as url:
        assert held(get(f"{url}/nodes/node-0/metrics")) == [("node-0", "0", "counted", "main")]
        printed(empty)
        empty.ghost("metrics", "backfill", "--from", "10m")
        assert get(f"{url}/readyz") == "OK"
    assert tool_writes(empty, mark) == []
    assert [recorded(item) for item in objects(empty, "pods")] == [None]


def test_nvidia_gpu_through_dra_names_its_containers(empty):
    empty.ghost("add-pool", "--count", "1", "--advertise", "dra")
    two = pod("two", gpus=1)
    (first,) = two["spec"]["containers"]
    two["spec"]["containers"] = [first, {**first, "name": "side"}]
    apply(empty, two)
    running(empty, "two")
    found = held(printed(empty))
    assert {(node, name) for node, _, name, _ in found} == {("node-0", "two")}
    assert sorted(container for *_, container in found) == ["main", "side"]
    assert len({gpu for _, gpu, _, _ in found}) == 2


def test_a_claim_that_two_pods_share_shows_both(empty):
    empty.ghost("add-pool", "--count", "1")
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    }
    both = [pod(name) for name in ("one", "other")]
    for item in both:
        item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        item["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    apply(empty, claim, *both)
    running(empty, "one")
    running(empty, "other")
    assert held(printed(empty)) == [("node-0", "0", "one", "main"), ("node-0", "0", "other", "main")]
    empty.kubectl("delete", "pod", "one", "--force")
    assert held(printed(empty)) == [("node-0", "0", "other", "main")]
    empty.kubectl("delete", "pod", "other", "--force")
    empty.kubectl("delete", "resourceclaim", "shared")


def test_instances_carry_the_pod_and_have_no_utilisation(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    empty.ghost("mig-split", "node-0/gpu-0", "--profiles", "3g.40gb*2")
    apply(
        empty,
        claim_template("half", {"deviceClassName": "mig.nvidia.com"}),
        deployment(pod("half", template="half"), 1),
    )
    running(empty, "half")
    text = printed(empty)
    assert [labels["gpu"] for labels, _ in samples(text, UTILIZATION)] == ["1"]
    engines = samples(text, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    instances = [
        (labels["GPU_I_PROFILE"], labels.get("pod", "")[:4], value) for labels, value in engines if labels["gpu"] == "0"
    ]
    assert sorted(instances) == [("3g.40gb", "", 0), ("3g.40gb", "half", 0.85)]
    energy = {value for labels, value in samples(text, "DCGM_FI_DEV_POWER_USAGE") if labels["gpu"] == "0"}
    assert len(energy) == 1


def test_instances_on_demand_are_there_while_somebody_has_them(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2", "--mig", "dynamic")
    apply(
        empty,
        claim_template(
            "part",
            {
                "deviceClassName": "mig.nvidia.com",
                **cel("device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"),
            },
        ),
        deployment(pod("part", template="part"), 2),
    )
    running(empty, "part", 2)
    given = devices_of(empty, "part")
    engines = samples(printed(empty), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    shown = {labels["dra_device_name"]: labels["GPU_I_PROFILE"] for labels, _ in engines if "pod" in labels}
    assert shown == {device: "2g.20gb" for _, device in given}
    empty.kubectl("delete", "deployment", "part")
    eventually(lambda: not objects(empty, "pods"))
    engines = samples(printed(empty), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    assert [(labels["gpu"], labels.get("GPU_I_PROFILE")) for labels, _ in engines] == [("0", None), ("1", None)]


def test_instances_that_are_counted(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1", "--advertise", "device-plugin")
    empty.ghost("mig-split", "node-0", "--profiles", "3g.40gb,1g.10gb*2")
    part = pod("part")
    part["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/mig-1g.10gb": 1}
    apply(empty, deployment(part, 2))
    running(empty, "part", 2)
    with serving(empty) as url:
        engines = samples(get(f"{url}/metrics"), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
        shown = sorted((labels["GPU_I_PROFILE"], labels.get("pod", "")[:4], value) for labels, value in engines)
        assert shown == [("1g.10gb", "part", 0.85), ("1g.10gb", "part", 0.85), ("3g.40gb", "", 0)]
        eventually(lambda: all(map(recorded, objects(empty, "pods"))))
    assert len({recorded(item) for item in objects(empty, "pods")}) == 2


def test_two_containers_with_a_claim_each_and_one_that_looks_on(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "2")
    both = pod("both")
    (first,) = both["spec"]["containers"]
    names = ("first", "second")
    both["spec"]["resourceClaims"] = [{"name": name, "resourceClaimTemplateName": "one"} for name in names]
    both["spec"]["containers"] = [{**first, "name": name, "resources": {"claims": [{"name": name}]}} for name in names]
    apply(empty, claim_template("one", {}), both)
    running(empty, "both")
    empty.kubectl("label", "namespace", "default", "resource.kubernetes.io/admin-access=true")
    looking = {"adminAccess": True, "allocationMode": "All"}
    apply(empty, claim_template("all", looking), pod("watcher", template="all"))
    running(empty, "watcher")
    found = held(printed(empty))
    assert sorted((name, container) for _, _, name, container in found) == [("both", "first"), ("both", "second")]
    assert len({gpu for _, gpu, _, _ in found}) == 2
    empty.kubectl("label", "namespace", "default", "resource.kubernetes.io/admin-access-")


def test_shares_of_a_gpu(empty):
    empty.ghost("add-pool", "--count", "1", "--gpus-per-node", "1", "--sharing", "time-slicing=2")
    apply(empty, deployment(pod("share", gpus=1), 2))
    running(empty, "share", 2)
    found = samples(printed(empty), UTILIZATION)
    assert sorted(labels["vgpu"] for labels, _ in found) == ["0", "1"]
    assert [value for _, value in found] == [100, 100]


def test_a_fault_shows_at_once_and_the_last_xid_stays_until_a_reboot(empty):
    empty.ghost("add-pool", "--count", "2")

    def xids(url):
        found = samples(get(f"{url}/nodes/node-1/metrics"), "DCGM_FI_DEV_XID_ERRORS")
        return {labels["gpu"]: (value, labels["err_msg"]) for labels, value in found if value}

    with serving(empty) as url:
        assert xids(url) == {}
        empty.ghost("fault", "xid", "node-1", "gpu-2")
        eventually(lambda: xids(url) == {"2": (79, "GPU has fallen off the bus")})
        text = get(f"{url}/nodes/node-1/metrics")
        assert [line.split("{")[0] for line in text.splitlines() if 'gpu="2"' in line] == ["DCGM_FI_DEV_XID_ERRORS"]
        empty.ghost("fault", "clear", "--all")
        eventually(lambda: len(samples(get(f"{url}/nodes/node-1/metrics"), UTILIZATION)) == 8)
        assert xids(url) == {"2": (79, "GPU has fallen off the bus")}
        empty.ghost("drain", "node-1", "--reboot", "--reboot-time", "1s")
        eventually(lambda: xids(url) == {})
        empty.ghost("fault", "gpu-lost", "node-1", "gpu-5")
        eventually(lambda: 'gpu="5"' not in get(f"{url}/nodes/node-1/metrics"))


def test_a_node_that_is_down_cannot_be_scraped(empty):
    empty.ghost("add-pool", "--count", "2")
    with serving(empty) as url:
        empty.ghost("fault", "node-down", "node-1")

        def status():
            try:
                return urllib.request.urlopen(f"{url}/nodes/node-1/metrics", timeout=10).status
            except urllib.error.HTTPError as error:
                return error.code

        eventually(lambda: status() == 503)
        assert {labels["Hostname"] for labels, _ in samples(get(f"{url}/metrics"), UTILIZATION)} == {"node-0"}


def test_shards_share_the_nodes(empty):
    empty.ghost("add-pool", "--count", "6", "--gpus-per-node", "1")
    seen = []
    for number in (1, 2, 3):
        with serving(empty, "--shard", f"{number}/3") as url:
            seen += [labels["Hostname"] for labels, _ in samples(get(f"{url}/metrics"), UTILIZATION)]
    assert sorted(seen) == [f"node-{index}" for index in range(6)]


def test_exit_codes(empty):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = empty.ghost("metrics", "serve", "--port", port, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\nChoose another one with --port.\n"
    )
    done = empty.ghost("metrics", "print", "--node", "none", check=False)
    assert (done.returncode, done.stderr) == (1, 'Error from server (NotFound): nodes "none" not found\n')
    done = empty.ghost("metrics", "serve", "--server", "https://127.0.0.1:1", check=False)
    assert done.returncode == 1
    assert "was refused" in done.stderr


@pytest.mark.parametrize(
    "flags", [["--fields", "nonsense"], ["--compat", "x"], ["--shard", "5/4"], ["--time-scale", "0"]]
)
def test_what_is_not_understood_is_refused(empty, flags):
    done = empty.ghost("metrics", "serve", *flags, check=False)
    assert done.returncode == 1
    assert flags[1] in done.stderr
