"""The command `phase`, which is also `python -m phase_rppg`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported prints no traceback either."""
    try:
        from .cli import main as run_command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run_command()


if __name__ == "__main__":
    main()
