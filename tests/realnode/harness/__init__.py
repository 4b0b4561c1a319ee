"""A real kubelet and containerd beside kwok's fake nodes, for root on Debian; neither Docker nor systemd is needed.

`machine.real_node` boots it and takes it down: a control plane by the tool's own engine, and a node that pods run on.
Only one can be on a machine at a time. What it changes of the machine (a bridge, iptables rules, sysctls) is put back,
also what a run that was killed has left, when the next one begins.
"""
