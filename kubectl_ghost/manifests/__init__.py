"""Domain values to Kubernetes objects, a pure function an object kind, and differences between objects as patches."""
