"""The command `phase`, which is also `python -m phase_rppg`."""

import gc
import sys

# Objects between two searches for reference cycles. With the default of Python, there are more than a hundred
# during the imports, which leave no cycles.
GC_OBJECTS = 25_000


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported prints no traceback either."""
    gc.set_threshold(GC_OBJECTS)
    try:
        from .cli import main as run_command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run_command()


if __name__ == "__main__":
    main()
