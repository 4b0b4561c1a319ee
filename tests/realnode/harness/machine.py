"""Boots the control plane and the node, and takes everything down again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kubectl_ghost.engine.binaries import chosen_bin_dir, require_binaries
from kubectl_ghost.engine.folders import Folders
from kubectl_ghost.engine.kwokctl import Cluster
from kubectl_ghost.engine.lock import exclusive
from kubectl_ghost.engine.progress import Progress
from kubectl_ghost.engine.versions import version_set
from tests.e2e.support import end_tests_on_sigterm
from tests.realnode.harness import control_plane, network, node, node_config, packages
from tests.realnode.harness.images import require_images
from tests.realnode.harness.kubelet import require_kubelet
from tests.realnode.harness.places import LOCK, LOGS, ROOT


@contextmanager
def real_node(python_image: str, audit_policy: str, progress: Progress) -> Iterator[Cluster]:
    """A cluster with one real node that is Ready and has `python_image`; gone when the context ends, however it does.

    What is built and made for it stays in the user's cache; the logs of the node stay until the next one.
    """
    end_tests_on_sigterm()
    packages.require_programs(progress)
    cache = Folders.of_user()
    versions = version_set()
    binaries = require_binaries(versions, cache, progress, chosen_bin_dir(None))
    kubelet = require_kubelet(versions, cache, progress)
    images = require_images(python_image, cache, progress)
    with exclusive(LOCK, progress, "another real node on this machine"), ExitStack() as after:
        _clean(progress)
        shutil.rmtree(LOGS, ignore_errors=True)
        after.callback(_clean, progress)
        network.remember_sysctls()
        network.add_bridge()
        cluster = control_plane.create(binaries, _folders(), audit_policy, progress)
        network.add_rules(cluster.record.ports["kubeApiserverPort"])
        node_config.configure(cluster)
        process = node.start(kubelet, images)
        after.callback(node.stop, process)
        node.wait_until_ready(cluster, process)
        yield cluster


def _folders() -> Folders:
    """The engine's folders, its clusters under the node's root."""
    return Folders(cache=Folders.of_user().cache, state=ROOT)


def _clean(progress: Progress) -> None:
    """Remove what a node leaves, its own processes being gone: those of a killed run went with it."""
    control_plane.remove(_folders(), progress)
    network.restore()
    node.remove_cgroups()
    for path in ROOT.glob("*"):
        if path != LOGS:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
