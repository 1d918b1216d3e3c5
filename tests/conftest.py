"""What all tests need."""

import signal

# A background job of a plain shell ignores Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
