"""The exposition to the byte: names, order, HELP and TYPE, order of labels, forms of numbers.

`python -m tests.unit.agent.test_golden` writes the files anew; what has changed is then for a reader to judge.
"""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubectl_ghost.domain.hardware import Occupancy, Sharing, SharingKind
from tests.unit.agent.kube import broken, by_claim, hardware, node, pod, scrape, split

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
LOAD = {"kubectl-ghost.dev/gpu-util": "97", "kubectl-ghost.dev/gpu-memory": "40Gi"}
COMPAT = "DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_XID_ERRORS,DCGM_FI_DRIVER_VERSION"


def claimed_and_idle():
    """A pod with a claim on the first of two H100, the second free."""
    return [node(hardware()), *by_claim("job-0", "gpu-0", namespace="ml", annotations=LOAD)]


def split_gpu():
    """An H100 in three instances, one of them claimed; beside it one in MIG mode without instances."""
    states = {0: split("3g.40gb:4", "1g.10gb:0", "1g.10gb:1"), 1: split()}
    return [
        node(hardware(states=states)),
        *by_claim("infer-0", "gpu-0-mig-3g40gb-9-4", namespace="ml", annotations=LOAD),
    ]


def t4():
    """Two T4 that four pods could share; two do."""
    shared = hardware(2, model="t4", pool="edge", sharing=Sharing(SharingKind.TIME_SLICING, 2))
    return [
        node(shared),
        pod("a", on="edge-0", gpus=1, recorded="gpu-0::0"),
        pod("b", on="edge-0", gpus=1, recorded="gpu-0::1"),
    ]


FLEETS = {
    "claim": (claimed_and_idle(), {}),
    "device-plugin": ([node(hardware()), pod("job-0", namespace="ml", gpus=1, recorded="gpu-1", annotations=LOAD)], {}),
    "mig": (split_gpu(), {}),
    "t4": (t4(), {}),
    "xid-79": ([node(hardware(states={1: broken()}))], {}),
    "occupied-and-hot": ([node(hardware(1, states={0: broken("thermal", occupancy=Occupancy())}))], {"fields": "all"}),
    "all-fields": (claimed_and_idle(), {"fields": "all"}),
    "compat-hostname": (claimed_and_idle(), {"fields": COMPAT, "compat": ["hostname"]}),
    "compat-old-namespace": (claimed_and_idle(), {"fields": COMPAT, "compat": ["old-namespace"]}),
    "compat-pod-labels": (claimed_and_idle(), {"fields": COMPAT, "compat": ["pod-labels,pod-uid"]}),
    "compat-mig-parent": (split_gpu(), {"fields": f"{COMPAT},DCGM_FI_DEV_POWER_USAGE", "compat": ["mig-parent"]}),
}


@pytest.mark.parametrize("name", FLEETS)
def test_the_exposition_is_what_it_was(name):
    objects, options = FLEETS[name]
    assert scrape(*objects, **options) == (GOLDEN / f"{name}.prom").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FLEETS)
def test_prometheus_clients_parser_understands_it(name):
    text = (GOLDEN / f"{name}.prom").read_text(encoding="utf-8")
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(found) == sum(not line.startswith("#") for line in text.splitlines())


def test_a_line_of_an_allocated_gpu_is_dcgm_exporters_own():
    """As composed from dcgm-exporter's template and a capture."""
    line = (
        'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-93bda175-6dc2-5266-92eb-242f7a79715d",pci_bus_id="00000000:1B:00.0",'
        'device="nvidia1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-0",DCGM_FI_DRIVER_VERSION="580.105.08",'
        'container="main",namespace="ml",pod="job-0"} 97'
    )
    assert line in (GOLDEN / "device-plugin.prom").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, (objects, options) in FLEETS.items():
        (GOLDEN / f"{name}.prom").write_text(scrape(*objects, **options), encoding="utf-8")
