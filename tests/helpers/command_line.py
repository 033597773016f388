"""What the command line answers."""


def refused(ended: tuple[int, str, str]) -> str:
    """The message of a command that ended with an error a reader can mend."""
    status, out, errors = ended
    assert status == 2 and out == ""
    assert "Traceback" not in errors
    return errors
