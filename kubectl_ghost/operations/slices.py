"""Reading this tool's ResourceSlices; none where the server does not know the type."""

from __future__ import annotations

from collections import defaultdict

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import RESOURCE_SLICES
from kubectl_ghost.domain.guard import has_our_label
from kubectl_ghost.domain.keys import Json


def read_slices(
    reader: Reader, *, selector: str | None = None, node_name: str | None = None, metadata_only: bool = False
) -> list[Json]:
    """The slices of ours that match a label selector, or that stand on one node."""
    if not reader.served(RESOURCE_SLICES):
        return []
    fields = f"spec.nodeName={node_name}" if node_name else None
    found = reader.list(
        RESOURCE_SLICES, label_selector=selector, field_selector=fields, metadata_only=metadata_only
    ).items
    return [item for item in found if has_our_label(item)]


def slices_by_node(reader: Reader, selector: str) -> dict[str, list[Json]]:
    """The slices of ours that match a label selector, by the node that they stand on."""
    by_node: dict[str, list[Json]] = defaultdict(list)
    for item in read_slices(reader, selector=selector):
        by_node[item["spec"].get("nodeName", "")].append(item)
    return by_node
