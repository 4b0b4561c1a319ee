"""Entry point of the console script `kubectl-ghost` and of `python -m kubectl_ghost`."""

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from kubectl_ghost.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
