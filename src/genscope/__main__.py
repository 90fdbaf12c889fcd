"""`python -m genscope` is the program `genscope`."""

from genscope.cli import main

if __name__ == "__main__":
    main()
