"""Identities are unique where hardware's are, and the same every time."""

from uuid import uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ghost.domain.catalogue import model, model_keys
from kubectl_ghost.domain.identity import NAMESPACE, gpu_uuid, name_suffix, pci_addresses


def test_uuids_are_unique_over_a_fleet():
    uuids = {gpu_uuid(f"{pool}-{node}", gpu) for pool in ("a", "a-1") for node in range(200) for gpu in range(12)}
    assert len(uuids) == 2 * 200 * 12


@given(st.text("abc-0123456789", min_size=1, max_size=63), st.integers(0, 127))
def test_uuids_are_of_version_5(node, index):
    assert gpu_uuid(node, index) == f"GPU-{uuid5(NAMESPACE, f'{node}-{index}')}"


def test_uuids_never_change():
    # Written down: dashboards and tests of users refer to them.
    assert gpu_uuid("node-0", 0) == "GPU-12b2eaa0-1404-5235-bc5b-61c3d261e4fe"


@pytest.mark.parametrize("key", model_keys())
@given(gpus=st.integers(1, 128))
def test_pci_addresses_are_unique_on_a_node(key, gpus):
    addresses = pci_addresses(model(key), gpus)
    assert len({address.bus_id for address in addresses}) == gpus
    assert all(len(address.bus_id) == len("0000:1a:00.0") for address in addresses)
    for address in addresses:
        assert address.root.removeprefix("pci").split(":")[0] == address.bus_id.split(":")[0]


def test_an_h100_board_has_two_roots_of_four():
    roots = [address.root for address in pci_addresses(model("h100-sxm5-80gb"), 8)]
    assert roots == ["pci0000:00"] * 4 + ["pci0000:80"] * 4


def test_a_grace_blackwell_tray_has_pairs():
    roots = [address.root for address in pci_addresses(model("gb200"), 4)]
    assert roots == ["pci0000:00", "pci0000:00", "pci0000:40", "pci0000:40"]


@given(st.text("abc-0123456789", min_size=1, max_size=63))
def test_suffixes_look_like_generated_ones(name):
    assert len(name_suffix(name)) == 5
    assert name_suffix(name) == name_suffix(name)
    assert name_suffix(name).isalnum()
