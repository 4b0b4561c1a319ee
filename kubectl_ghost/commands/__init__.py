"""A file a verb: parse, call an operation, print. Loaded lazily by the command line."""
