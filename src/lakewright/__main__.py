"""``python -m lakewright`` is the command ``lakewright``."""

from lakewright.interfaces.cli.main import run

if __name__ == "__main__":
    run()
