"""Ctrl-C for processes that tests start."""

import signal


def heed_interrupts():
    """For `preexec_fn`: what is begun where SIGINT is ignored (`nohup make test &`) heeds it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
