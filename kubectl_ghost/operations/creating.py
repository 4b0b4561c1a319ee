"""Creating objects in a namespace that may have been made a moment ago, or be going at this moment."""

from __future__ import annotations

import time

from kubectl_ghost.cluster.errors import AlreadyExists, ApiError, Forbidden, NotFound
from kubectl_ghost.cluster.resources import NAMESPACES, Resource
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.dry_run import DryRun
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.2
_NO_ACCOUNT = "error looking up service account"
"""What the server says of a pod in a namespace so new that its service account has not been made yet."""
_NO_CLASS = "no PriorityClass with name"


class SpaceLost(Exception):
    """The namespace went while something was made in it, with whatever had been made there before."""


def settled(writer: Writer, name: str, space: Json | None, *, needed: bool) -> Json | None:
    """The namespace `name`, once one that is going has gone if another is needed.

    Args:
        space: as it was found; None if there is none.

    Raises:
        GhostError: it does not go.
    """
    end = time.monotonic() + _PATIENCE_SECONDS
    while space is not None and space["metadata"].get("deletionTimestamp"):
        if not needed or writer.dry_run is not DryRun.NONE:
            return None
        if time.monotonic() >= end:
            raise GhostError(
                f'namespace "{name}" is being deleted and does not go',
                f"See what keeps it: kubectl get namespace {name} -o yaml",
            )
        time.sleep(_POLL_SECONDS)
        # Gone, or made anew by somebody who has waited as well.
        space = writer.find(NAMESPACES, name)
    return space


def create_soon(writer: Writer, resource: Resource, body: Json) -> Json:
    """Create an object, waiting for what is on its way: a namesake that goes, the namespace's service account.

    Raises:
        SpaceLost: the namespace or the priority class is going or gone.
    """
    metadata, end = body["metadata"], time.monotonic() + _PATIENCE_SECONDS
    problem: ApiError
    while True:
        try:
            return writer.create(resource, body)
        except AlreadyExists as error:
            live, problem = writer.find(resource, metadata["name"], metadata.get("namespace")), error
            if live is not None and not live["metadata"].get("deletionTimestamp"):
                # Somebody else does the same at this moment.
                return live
        except NotFound as error:
            raise SpaceLost from error
        except Forbidden as error:
            # Whoever takes the namespace away takes the classes first.
            if error.namespace_is_terminating or _NO_CLASS in error.message:
                raise SpaceLost from error
            if _NO_ACCOUNT not in error.message:
                raise
            problem = error
        if time.monotonic() >= end:
            raise problem
        time.sleep(_POLL_SECONDS)
