"""kubectl's rules in one place: flags, exit codes, messages, durations. Knows nothing of GPUs."""
