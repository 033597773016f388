from repro.cli import main

if __name__ == "__main__":  # processes that decode pictures import this module again
    main()
