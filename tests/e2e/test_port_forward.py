"""`metrics port-forward` in a cluster of simulated nodes alone: no pod can run there, so this process serves."""

from kubectl_ghost.engine.ports import is_free
from tests.e2e.fleet import audit_mark, tool_writes
from tests.e2e.forwarding import nodes_in, port_forward, xids
from tests.e2e.support import eventually


def test_the_three_lines(empty):
    """What the tool is for, word for word."""
    eventually(lambda: is_free(9400), 120)
    empty.ghost("add-pool")
    empty.ghost("fault", "xid", "node-3", "gpu-2")
    since = audit_mark(empty)
    with port_forward(empty) as forward:
        assert forward.port() == 9400
        text = forward.scrape()
        [(place, (xid, labels))] = xids(text).items()
        assert (place, xid) == (("node-3", "2"), 79)
        assert not {"pod", "namespace", "container"} & set(labels)
        assert nodes_in(text) == {"node-0", "node-1", "node-2", "node-3"}
        code, out, said = forward.interrupt()
    assert (code, out) == (0, "")
    assert "No node of this cluster can run the agent's pod: serving from this process instead\n" in said
    assert tool_writes(empty, since) == []


def test_deploy_needs_a_real_node(empty):
    empty.ghost("add-pool", "--count", "1")
    since = audit_mark(empty)
    refused = empty.ghost("metrics", "deploy", check=False)
    assert refused.returncode == 1
    assert "no node can run the agent" in refused.stderr
    assert tool_writes(empty, since) == []
