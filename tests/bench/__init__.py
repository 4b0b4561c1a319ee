"""Speed as users feel it: whole commands, each beside a peer measured in the same run."""
