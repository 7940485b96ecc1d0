"""``python -m retrasyn``."""

from retrasyn.cli import main

if __name__ == "__main__":
    main()
