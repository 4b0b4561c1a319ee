"""Labels of series: order, spelling, what --compat changes; whatever a pod is called, Prometheus can read them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ghost.domain.hardware import Advertise, Sharing, SharingKind
from tests.unit.agent.kube import by_claim, container, hardware, node, pod, scrape, split
from tests.unit.agent.series import UTIL, named, read, users

XID, FB = "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_FB_USED"
DEVICE = ["gpu", "UUID", "pci_bus_id", "device", "modelName"]
CLAIM = ["dra_claim_name", "dra_claim_namespace", "dra_device_name", "dra_driver_name", "dra_pool_name"]
PART = "gpu-0-mig-1g10gb-19-0"


def order(text, name=UTIL):
    """Names of the labels of a field's first series, in their order."""
    line = next(line for line in text.splitlines() if line.startswith(f"{name}{{"))
    return [part.partition("=")[0] for part in line.partition("{")[2].partition("}")[0].split('",')]


def labels(text, name=UTIL):
    """The labels of a field's only series."""
    (series,) = named(text, name)
    return series.labels


def test_a_free_gpu_has_no_pod_labels_not_even_empty_ones():
    text = scrape(node(hardware(1)))
    assert order(text) == [*DEVICE, "Hostname", "DCGM_FI_DRIVER_VERSION"]
    assert order(text, XID) == [*DEVICE, "Hostname", "DCGM_FI_DRIVER_VERSION", "err_code", "err_msg"]


def test_a_counted_gpu():
    text = scrape(node(hardware(1)), pod("train", gpus=1, namespace="ml"))
    assert order(text) == [*DEVICE, "Hostname", "DCGM_FI_DRIVER_VERSION", "container", "namespace", "pod"]
    assert order(text, XID)[-5:] == ["container", "err_code", "err_msg", "namespace", "pod"]
    found = labels(text)
    assert (found["container"], found["namespace"], found["pod"]) == ("main", "ml", "train")


def test_a_claimed_gpu():
    text = scrape(node(hardware(1)), *by_claim("train", "gpu-0", namespace="ml"))
    assert order(text) == [*DEVICE, "Hostname", "DCGM_FI_DRIVER_VERSION", "container", *CLAIM, "namespace", "pod"]
    assert order(text, XID)[-5:] == ["dra_pool_name", "err_code", "err_msg", "namespace", "pod"]
    assert [labels(text)[name] for name in CLAIM] == ["train-gpu", "ml", "gpu-0", "gpu.nvidia.com", "node-0"]


def test_a_claimed_instance():
    text = scrape(node(hardware(1, states={0: split("1g.10gb:0")})), *by_claim("infer", PART))
    mig = ["dra_driver_name", "dra_mig_device_uuid", "dra_mig_profile", "dra_pool_name"]
    assert order(text, FB) == [
        *DEVICE,
        *("GPU_I_PROFILE", "GPU_I_ID"),
        *("Hostname", "DCGM_FI_DRIVER_VERSION", "container"),
        *CLAIM[:3],
        *mig,
        *("namespace", "pod"),
    ]
    found = labels(text, FB)
    assert (found["GPU_I_PROFILE"], found["GPU_I_ID"], found["dra_mig_profile"]) == ("1g.10gb", "7", "1g.10gb")
    assert found["dra_mig_device_uuid"].startswith("MIG-")


def test_a_share_of_a_gpu_has_its_number():
    declared = hardware(1, advertise=Advertise.DEVICE_PLUGIN, sharing=Sharing(SharingKind.TIME_SLICING, 3))
    pods = [pod(name, gpus=1) for name in ("a", "b")]
    text = scrape(node(declared), *pods)
    assert order(text)[-4:] == ["container", "namespace", "pod", "vgpu"]
    assert users(text) == {("node-0", 0, "", ""): [("default", "a", "main", "0"), ("default", "b", "main", "1")]}


def test_a_pod_that_has_two_shares_of_one_gpu_has_two_series():
    declared = hardware(1, advertise=Advertise.DEVICE_PLUGIN, sharing=Sharing(SharingKind.TIME_SLICING, 3))
    text = scrape(node(declared), pod("a", gpus=2))
    assert [series.labels["vgpu"] for series in named(text, UTIL)] == ["0", "1"]


def test_hostname():
    text = scrape(node(hardware(1)), compat=["hostname"])
    assert order(text) == [*DEVICE, "hostname", "DCGM_FI_DRIVER_VERSION"]


def test_old_namespace():
    text = scrape(node(hardware(1)), *by_claim("train", "gpu-0"), compat=["old-namespace"])
    assert order(text) == [
        *("gpu", "uuid", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION", "container_name"),
        *CLAIM,
        *("pod_name", "pod_namespace"),
    ]
    assert order(text, XID)[-4:] == ["err_code", "err_msg", "pod_name", "pod_namespace"]


def test_pod_uid():
    text = scrape(node(hardware(1)), pod("train", gpus=1), compat=["pod-uid"])
    assert order(text)[-4:] == ["container", "namespace", "pod", "pod_uid"]
    assert labels(text)["pod_uid"] == "uid-default-train"


def test_pod_labels_stand_among_the_exporters_own_and_are_spelled_for_prometheus():
    own = {"app.kubernetes.io/name": "trainer", "team": "a"}
    text = scrape(node(hardware(1)), pod("train", gpus=1, labels=own), compat=["pod-labels"])
    assert order(text)[5:] == [
        *("Hostname", "DCGM_FI_DRIVER_VERSION", "app_kubernetes_io_name", "team"),
        *("container", "namespace", "pod"),
    ]
    assert labels(text)["app_kubernetes_io_name"] == "trainer"
    counts = scrape(
        node(hardware(1)), pod("train", gpus=1, labels=own), compat=["pod-labels"], fields="DCGM_EXP_XID_ERRORS_COUNT"
    )
    assert order(counts, "DCGM_EXP_XID_ERRORS_COUNT")[6:] == [
        *("app_kubernetes_io_name", "team", "window_size_in_ms", "container", "namespace", "pod")
    ]


def test_without_the_word_pod_labels_are_not_even_kept():
    assert "team" not in scrape(node(hardware(1)), pod("train", gpus=1, labels={"team": "a"}))


RESERVED = ["gpu", "UUID", "device", "Hostname", "pod", "namespace", "container", "vgpu", "err_code", "err_msg", "xid"]
RESERVED += ["dra_claim_name", "window_size_in_ms", "DCGM_FI_DRIVER_VERSION", "GPU_I_ID", "modelName", "pod_uid"]
keys = st.sampled_from([*RESERVED, "1st", "a.b", "a-b", "a_b", "x/y", "9"])


@settings(deadline=None, max_examples=40)
@given(
    own=st.dictionaries(keys, st.sampled_from(["", "v", "v-1.2_3"]), max_size=5),
    words=st.lists(st.sampled_from(["pod-labels", "hostname", "old-namespace", "pod-uid", "mig-parent"]), unique=True),
)
def test_whatever_labels_a_pod_has_prometheus_can_read_its_series(own, words):
    holder, granted = by_claim("train", PART, labels=own)
    other, theirs = by_claim("other", "gpu-1", labels=own)
    declared = hardware(states={0: split("1g.10gb:0", "1g.10gb:1")})
    text = scrape(
        node(declared), holder, granted, other, theirs, compat=["pod-labels", *words], fields="default,xid-counts,p2p"
    )
    keys = [series.key for series in read(text)]
    assert len(keys) == len(set(keys))
    name = "pod_name" if "old-namespace" in words else "pod"
    assert {series.labels.get(name) for series in read(text)} == {"train", "other", None}


def test_of_labels_that_come_out_alike_one_is_shown_whatever_their_order():
    one, other = {"a.b": "1", "a-b": "2"}, {"a-b": "2", "a.b": "1"}
    texts = [scrape(node(hardware(1)), pod("p", gpus=1, labels=own), compat=["pod-labels"]) for own in (one, other)]
    assert texts[0] == texts[1]


def mig_parent(*more):
    declared = hardware(1, states={0: split("1g.10gb:0", "1g.10gb:1")})
    return scrape(node(declared), *more, compat=["mig-parent"])


PARENT, HELD, FREE = ("node-0", 0, "", ""), ("node-0", 0, "1g.10gb", "7"), ("node-0", 0, "1g.10gb", "8")


def test_mig_parent_shows_a_claimed_instance_on_its_gpu():
    text = mig_parent(*by_claim("infer", PART))
    assert users(text) == {PARENT: [("default", "infer", "main", "")], HELD: [], FREE: []}
    assert {series.gpu for series in named(text, FB)} == {HELD, FREE}
    assert not named(text, UTIL)


def test_mig_parent_leaves_a_counted_instance_where_it_is():
    counted = pod("infer", container(limits={"nvidia.com/mig-1g.10gb": 1}))
    assert users(mig_parent(counted)) == {PARENT: [], HELD: [("default", "infer", "main", "")], FREE: []}


def test_mig_parent_without_claims_has_a_free_gpu_beside_its_instances():
    assert users(mig_parent()) == {PARENT: [], HELD: [], FREE: []}


def test_mig_parent_shows_every_claim_once():
    both = container("main", "gpu")
    holder = pod("infer", both, claims={"gpu": "x"})
    _, granted = by_claim("infer", PART, "gpu-0-mig-1g10gb-19-1")
    granted["metadata"]["name"] = "x"
    text = mig_parent(holder, granted)
    claimed = [series.labels["dra_device_name"] for series in named(text, XID) if series.gpu == PARENT]
    assert claimed == [PART, "gpu-0-mig-1g10gb-19-1"]


@pytest.mark.parametrize(
    ("model", "gpus", "last"), [("h100-sxm5-80gb", 8, "00000000:CB:00.0"), ("t4", 8, "00000001:8B:00.0")]
)
def test_addresses_have_a_domain_of_eight_digits_in_capitals(model, gpus, last):
    text = scrape(node(hardware(gpus, model=model)))
    addresses = [series.labels["pci_bus_id"] for series in named(text, UTIL)]
    assert len(set(addresses)) == gpus
    assert addresses[-1] == last
