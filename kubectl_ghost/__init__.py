"""kubectl-ghost: GPU fleets that do not exist, on a Kubernetes cluster that does."""

__version__ = "0.1.0"
