"""The metrics agent: serves what dcgm-exporter would on every simulated node, from one process.

It imports the standard library, prometheus_client and `kubectl_ghost.domain`, so that it can travel as one file. The
way of a number: `watcher` fills the `fleet`, `devices` turns one node of it into devices with their labels, `sampling`
reads their sensors at a moment, `exposition` writes that down, `server` hands it out.
"""
