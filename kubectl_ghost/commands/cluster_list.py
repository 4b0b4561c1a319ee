"""`kubectl ghost cluster list`."""

from __future__ import annotations

import click

from kubectl_ghost.conventions.command import GhostCommand


@click.command(cls=GhostCommand, name="list")
def command() -> None:
    """List the clusters that `cluster up` has made."""
    from kubectl_ghost.engine.folders import Folders
    from kubectl_ghost.engine.status import list_clusters
    from kubectl_ghost.render.age import UNKNOWN, human_duration
    from kubectl_ghost.render.columns import NONE, aligned

    clusters = list_clusters(Folders.of_user())
    if not clusters:
        click.echo("No clusters found", err=True)
        return
    columns = {
        "NAME": [cluster.name for cluster in clusters],
        "STATUS": [cluster.status for cluster in clusters],
        "VERSION": [cluster.version or NONE for cluster in clusters],
        "SERVER": [cluster.server or NONE for cluster in clusters],
        "AGE": [human_duration(cluster.age) if cluster.age is not None else UNKNOWN for cluster in clusters],
    }
    click.echo("".join(aligned([[title, *cells] for title, cells in columns.items()])), nl=False)
