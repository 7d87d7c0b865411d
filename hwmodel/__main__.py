"""python -m hwmodel, and the command hwmodel."""

import os
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C while it is imported is one line, too."""
    try:
        from hwmodel.cli import main as run

        run()
    except KeyboardInterrupt:
        os.write(2, b"hwmodel: interrupted\n")
        os._exit(130)  # sys.exit could end as by the signal where exec() was interrupted


if __name__ == "__main__":
    main()
