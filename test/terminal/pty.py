"""Runs a command in a pseudo-terminal of its own, for tests: python3 -I pty.py COLS ROWS COMMAND [ARG ...]

Its output goes to our stdout, byte by byte as it comes. Each line of our stdin is one order, in JSON:

    {"write": "text"}         type this; "\\u0003" is Ctrl-C
    {"resize": [100, 30]}     columns and rows; the kernel then sends SIGWINCH
    {"kill": true}            end the command and everything in its session

The end of stdin kills as well, so that nothing outlives the test that started it. We exit with the code of the
command, or 128 + n if signal n ended it, as a shell would say. Only Python's standard library; Linux and macOS.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios

# What a command wrote last may reach our end of the terminal a moment after the command is gone.
DRAIN_SECONDS = 0.2
STDIN, STDOUT = 0, 1


def resize(terminal, cols, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def start(cols, rows, command):
    # The child waits for this pipe, so that it never sees a terminal without a size.
    sized, tell = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.close(tell)
        os.read(sized, 1)
        os.close(sized)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be inherited.
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\r\n".encode())
            os._exit(127)
    os.close(sized)
    resize(terminal, cols, rows)
    os.close(tell)
    return pid, terminal


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def session_members(session):
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            if name.isdigit() and os.getsid(int(name)) == session:
                yield int(name)
        except OSError:
            pass  # It ended while we looked.


def kill_session(session):
    # Jobs of an interactive shell have groups of their own; without /proc, closing the terminal has to do for them.
    for target in [-session, *session_members(session)]:
        try:
            os.kill(target, signal.SIGKILL)
        except OSError:
            pass


def obey(order, pid, terminal):
    if "write" in order:
        write_all(terminal, order["write"].encode())
    if "resize" in order:
        resize(terminal, *order["resize"])
    if order.get("kill"):
        kill_session(pid)


def relay(pid, terminal):
    """Passes output on and carries out orders until the command has ended; returns how it did."""
    orders = b""
    sources = [terminal, STDIN]
    status = None
    while True:
        ready, _, _ = select.select(sources, [], [], DRAIN_SECONDS)
        if terminal in ready:
            try:
                output = os.read(terminal, 65536)
            except OSError:
                output = b""  # Linux says so when nobody has the other end open any more.
            if not output:
                return status if status is not None else os.waitpid(pid, 0)[1]
            write_all(STDOUT, output)
        if STDIN in ready:
            chunk = os.read(STDIN, 65536)
            if not chunk:
                sources.remove(STDIN)
                kill_session(pid)
            *lines, orders = (orders + chunk).split(b"\n")
            for line in lines:
                obey(json.loads(line), pid, terminal)
        if status is None:
            ended, how = os.waitpid(pid, os.WNOHANG)
            status = how if ended else None
        elif terminal not in ready:
            # Something it left behind holds the terminal; there is nothing more from the command itself.
            return status


def main():
    pid, terminal = start(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    # Ctrl-C on the tests themselves reaches us too; what ends us is the end of stdin, so that we can clean up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = relay(pid, terminal)
    finally:
        kill_session(pid)
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


main()
