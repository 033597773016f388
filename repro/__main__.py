"""Where `repro` and `python3 -m repro` begin."""

import sys


def main() -> None:
    """Run the command line, whose imports take seconds; stopped by Ctrl-C meanwhile it ends with the same status."""
    try:
        from repro import cli
    except KeyboardInterrupt:
        print("repro: stopped before anything was begun", file=sys.stderr)
        sys.exit(130)
    cli.main()


if __name__ == "__main__":  # processes that decode pictures import this module again
    main()
