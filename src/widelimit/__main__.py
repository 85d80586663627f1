"""`python -m widelimit`: the command line, where its script is not on the path."""

from widelimit.cli import main

if __name__ == "__main__":
    main()
