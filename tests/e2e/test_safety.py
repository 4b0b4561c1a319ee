"""The safety invariant on a real API server, by its own audit log: never a write to what is not simulated and ours."""

from tests.e2e.fleet import apply, audit_mark, claim_template, objects, pod, running, tool_writes

MAY_BE_WRITTEN = {"nodes", "resourceslices", "deviceclasses", "pods"}


def node(name, **metadata):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


def test_no_command_writes_to_nodes_of_others(empty):
    since = audit_mark(empty)
    simulated = {"annotations": {"kwok.x-k8s.io/node": "fake"}}
    apply(
        empty,
        node("real-0"),
        node("node-real", labels={"kubectl-ghost.dev/pool": "node"}),
        node("node-9", labels={"kubectl-ghost.dev/pool": "node", "app.kubernetes.io/managed-by": "kubectl-ghost"}),
        node("other-0", **simulated, labels={"kubectl-ghost.dev/pool": "node"}),
        pod("on-real", nodeName="real-0"),
        pod("on-other", nodeName="other-0"),
    )
    running(empty, "on-other")
    empty.ghost("add-pool", "--count", "2")
    apply(empty, claim_template("one", {}), pod("ours", template="one", tolerations=[{"operator": "Exists"}]))
    running(empty, "ours")
    before = {item["metadata"]["name"]: item["metadata"] for item in objects(empty, "nodes,pods")}
    foreign = {"real-0", "node-real", "node-9", "other-0", "on-real", "on-other"}
    for command in (
        ["add-pool", "--gpu", "h100", "--labels", "a=b", "--taints", "x=y:NoSchedule"],
        ["add-pool", "second", "--count", "2", "--advertise", "device-plugin"],
        ["add-pool", "real", "--count", "1"],
        ["add-pool", "other", "--count", "1"],
        ["scale-pool", "node", "3"],
        ["scale-pool", "node", "1"],
        ["scale-pool", "real", "1"],
        ["sync"],
        ["status"],
        ["get", "gpus"],
        ["delete-pool", "second"],
        ["delete-pool", "other"],
        ["delete-pool", "--all"],
    ):
        empty.ghost(*command, check=False)
    after = {item["metadata"]["name"]: item["metadata"] for item in objects(empty, "nodes,pods")}
    for name in foreign:
        assert after[name]["uid"] == before[name]["uid"]
        assert after[name].get("labels") == before[name].get("labels")
        assert "deletionTimestamp" not in after[name]
    events = tool_writes(empty, since)
    seen = [(event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name", "")) for event in events]
    assert len(seen) > 20
    assert {resource for _, resource, _ in seen} <= MAY_BE_WRITTEN
    assert not [write for write in seen if write[2] in foreign]
    # Collections are only ever deleted by the label of a pool.
    collections = [event["requestURI"] for event in events if event["verb"] == "deletecollection"]
    assert collections
    assert all("labelSelector=" in uri and "kubectl-ghost.dev%2Fpool%3D" in uri for uri in collections)


def test_a_device_class_of_someone_else_is_left_as_it_is(empty):
    theirs = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
    }
    apply(empty, theirs)
    try:
        before = objects(empty, "deviceclasses")[0]["metadata"]["resourceVersion"]
        done = empty.ghost("add-pool", "--advertise", "dra", "--count", "1")
        assert "DeviceClass gpu.nvidia.com is not this tool's" in done.stderr
        empty.ghost("sync")
        empty.ghost("delete-pool", "--all")
        (left,) = objects(empty, "deviceclasses")
        assert left["metadata"]["resourceVersion"] == before
    finally:
        empty.kubectl("delete", "deviceclass", "gpu.nvidia.com")
