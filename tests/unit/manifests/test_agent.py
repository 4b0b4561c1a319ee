"""The agent's objects: what the pod may do, where it runs, how Prometheus finds it, and when two are the same."""

import base64
from dataclasses import replace

import pytest

from kubectl_ghost.manifests import agent
from kubectl_ghost.manifests.agent import AgentPod, Bundle, digest_of

BUNDLE = Bundle(b"zipped", "digest")
WANTED = AgentPod(BUNDLE)


def spec(wanted=WANTED, nodes=("worker",)):
    return agent.pod(wanted, list(nodes))["spec"]


def container(wanted=WANTED):
    [found] = spec(wanted)["containers"]
    return found


def test_the_pod_can_change_nothing_and_is_nobody():
    assert spec()["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container()["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert agent.namespace()["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_it_takes_little():
    assert container()["resources"] == {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }


def test_only_the_pod_is_given_the_accounts_token():
    assert agent.service_account()["automountServiceAccountToken"] is False
    assert (spec()["serviceAccountName"], spec()["automountServiceAccountToken"]) == ("kubectl-ghost-agent", True)


def test_it_runs_on_one_of_the_nodes_by_name_and_on_fifty_at_most():
    def names(nodes):
        rule = spec(nodes=nodes)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        fields = [term["matchFields"] for term in rule["nodeSelectorTerms"]]
        assert all(len(field) == 1 and field[0]["key"] == "metadata.name" for field in fields)
        return [field[0]["values"] for field in fields]

    assert names(["a", "b"]) == [["a"], ["b"]]
    assert len(names([f"n{i}" for i in range(51)])) == 50


def test_it_tolerates_the_control_planes_taint_alone():
    assert spec()["tolerations"] == [
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize(("seconds", "deadline"), [(None, None), (60, 60)])
def test_its_time_is_the_pods_deadline(seconds, deadline):
    assert spec(replace(WANTED, seconds=seconds)).get("activeDeadlineSeconds") == deadline


def test_the_code_is_run_from_the_config_map_by_the_images_python():
    made = agent.config_map(WANTED)
    assert base64.b64decode(made["binaryData"]["agent.pyz"]) == b"zipped"
    assert "data" not in made
    assert container()["image"] == "docker.io/library/python:3.13-alpine"
    assert container()["imagePullPolicy"] == "IfNotPresent"
    assert container()["command"] == ["python3", "/agent/agent.pyz"]
    assert container()["args"] == ["--port", "9400"]
    assert container()["volumeMounts"] == [{"name": "agent", "mountPath": "/agent", "readOnly": True}]
    assert spec()["volumes"] == [{"name": "agent", "configMap": {"name": "kubectl-ghost-agent"}}]


def test_options_and_a_counters_file_are_passed_on():
    wanted = replace(WANTED, arguments=("--read-only",), counters="A, gauge, a\n", image="example.com/python")
    assert container(wanted)["args"] == ["--port", "9400", "--counters", "/agent/counters.csv", "--read-only"]
    assert container(wanted)["image"] == "example.com/python"
    assert agent.config_map(wanted)["data"] == {"counters.csv": "A, gauge, a\n"}


def test_prometheus_finds_it_as_it_finds_dcgm_exporter():
    metadata = agent.pod(WANTED, ["worker"])["metadata"]
    found = {key: value for key, value in metadata["annotations"].items() if key.startswith("prometheus.io/")}
    assert found == {"prometheus.io/scrape": "true", "prometheus.io/port": "9400", "prometheus.io/path": "/metrics"}
    assert metadata["labels"]["app.kubernetes.io/name"] == "kubectl-ghost-agent"
    assert container()["ports"] == [{"name": "metrics", "containerPort": 9400}]


def test_it_is_ready_when_it_knows_the_fleet_and_alive_when_it_answers():
    probes = [container()[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")]
    assert probes == [{"path": "/readyz", "port": "metrics"}, {"path": "/healthz", "port": "metrics"}]


def test_its_rights():
    reads = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get", "list", "watch"]},
    ]
    patch = {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
    assert agent.cluster_role(read_only=True)["rules"] == reads
    assert agent.cluster_role(read_only=False)["rules"] == [*reads, patch]
    binding = agent.cluster_role_binding()
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("ClusterRole", "kubectl-ghost-agent")
    account = {"kind": "ServiceAccount", "name": "kubectl-ghost-agent", "namespace": "kubectl-ghost-metrics"}
    assert binding["subjects"] == [account]


@pytest.mark.parametrize(
    "other",
    [
        replace(WANTED, image="example.com/python"),
        replace(WANTED, seconds=60),
        replace(WANTED, arguments=("--jitter", "5")),
        replace(WANTED, counters="A, gauge, a\n"),
        replace(WANTED, bundle=Bundle(b"zipped", "other")),
    ],
)
def test_a_pod_of_other_settings_or_code_has_another_digest(other):
    assert digest_of(agent.pod(WANTED, ["worker"])) != digest_of(agent.pod(other, ["worker"]))


def test_the_digest_is_of_what_was_asked_for():
    """Neither of the nodes that there happen to be, nor of how the same code was compressed."""
    assert digest_of(agent.pod(WANTED, ["a"])) == digest_of(agent.pod(WANTED, ["b", "c"])) != ""
    compressed = replace(WANTED, bundle=Bundle(b"otherwise", "digest"))
    assert digest_of(agent.config_map(compressed)) == digest_of(agent.config_map(WANTED)) != ""
    assert digest_of({"metadata": {"name": "x"}}) == ""
