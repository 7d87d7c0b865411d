"""python -m hwmodel, and the command hwmodel."""

import atexit
import os
import sys
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line; Ctrl-C while it is imported is one line, too.

    Python ends by the signal, whatever the exit code, where Ctrl-C came within exec(), which named
    tuples and data classes use; so the end of an interrupted command is ours.
    """
    try:
        from hwmodel.cli import main as run

        run()
    except KeyboardInterrupt:
        os.write(2, b"hwmodel: interrupted: no file is half written\n")
        os._exit(INTERRUPTED)
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
