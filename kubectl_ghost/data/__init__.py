"""The catalogues, each figure with its source."""
