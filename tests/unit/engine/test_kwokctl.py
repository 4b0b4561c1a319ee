"""The configuration and the environment that kwokctl gets."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
import yaml

from kubectl_ghost.engine.binaries import BinarySet
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.kwokctl import FAKE_POD_RANGE, SERVICE_RANGE, Cluster, Tools, configuration, environment
from kubectl_ghost.engine.ports import PORT_OPTIONS, choose_ports
from kubectl_ghost.engine.record import Record, Settings, State
from kubectl_ghost.engine.versions import VersionSet

PORTS = dict.fromkeys(PORT_OPTIONS, 1234)


def test_kwok_plays_marked_nodes_only_and_the_networks_do_not_overlap() -> None:
    config = yaml.safe_load(configuration(Settings("1.36"), PORTS, None))
    patches = {patch["name"]: {arg["key"]: arg for arg in patch["extraArgs"]} for patch in config["componentsPatches"]}
    assert patches["kwok-controller"]["manage-all-nodes"] == {
        "key": "manage-all-nodes",
        "value": "false",
        "override": True,
    }
    selector = patches["kwok-controller"]["manage-nodes-with-annotation-selector"]["value"]
    assert selector == "kwok.x-k8s.io/node=fake"
    pods = ipaddress.ip_interface(FAKE_POD_RANGE).network
    assert not pods.overlaps(ipaddress.ip_network(SERVICE_RANGE))
    assert config["options"]["enableCRDs"] == ["Stage"]
    assert config["options"]["bindAddress"] == "127.0.0.1"


def test_settings_reach_kwokctl() -> None:
    settings = Settings("1.36", feature_gates="A=true", disable_qps_limits=True, audit_policy="text")
    options = yaml.safe_load(configuration(settings, PORTS, Path("/policy")))["options"]
    assert options["kubeFeatureGates"] == "A=true"
    assert options["disableQPSLimits"] is True
    assert options["kubeAuditPolicy"] == "/policy"


def test_other_runtimes_choose_their_own_ports() -> None:
    options = yaml.safe_load(configuration(Settings("1.36", runtime="docker"), PORTS, None))["options"]
    assert options["runtime"] == "docker"
    assert not set(PORT_OPTIONS) & set(options)


def test_the_environment_keeps_the_users_kwok_out(
    folders: Folders, versions: VersionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KWOK_RUNTIME", "docker")
    monkeypatch.setenv("KUBECONFIG", "/users/own")
    monkeypatch.setenv("GOPROXY", "kept")
    folder = folders.cluster("a")
    record = Record(Settings("1.36"), State.CREATED, versions.kubernetes, "", {}, str(tmp_path))
    variables = environment(Cluster(folder, record, Tools.of(BinarySet(tmp_path, versions))))
    assert "KWOK_RUNTIME" not in variables
    assert variables["KUBECONFIG"] == str(folder.kubeconfig)
    assert variables["KWOK_WORKDIR"] == str(folder.kwok_workdir)
    assert variables["KWOK_CONTROLLER_BINARY"] == str(tmp_path / "kwok")
    assert variables["KWOK_KUBECTL_BINARY"] == str(tmp_path / "kubectl")
    assert variables["GOPROXY"] == "kept"


def test_ports_differ_and_avoid_those_taken() -> None:
    taken = set(range(20000, 29990))
    chosen = choose_ports(set(range(20000, 29000)))
    assert len(set(chosen.values())) == len(PORT_OPTIONS)
    assert min(chosen.values()) >= 29000
    assert not set(choose_ports(taken - {25000, *range(26000, 26100)}).values()) & (taken - set(range(25000, 26100)))
