"""The local control plane: finds or builds the binaries and drives kwokctl. Knows nothing of GPUs."""
