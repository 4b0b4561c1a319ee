"""The API server: kubeconfig, one transport, reads, guarded writes. Knows nothing of GPUs and prints nothing."""
