"""python -m hwmodel.trainer: the command by itself."""

from hwmodel.trainer.cli import main

main()
