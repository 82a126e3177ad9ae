"""Stands for a script that the host of ``warm`` runs: ``HOST SCRIPT ARGUMENTS``; a script."""

import json
import os
import signal
import socket
import struct
import sys

host = socket.socket(socket.AF_UNIX)
host.connect(sys.argv[1])
asked = {"words": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109
body = json.dumps(asked).encode()
socket.send_fds(host, [struct.pack("!I", len(body))], [0, 1, 2])
host.sendall(body)
for end in (0, 1, 2):
    os.close(end)  # what is on their other ends shall see when the script closes them
told = host.recv(4)
status = struct.unpack("!I", told)[0] if told else signal.SIGKILL
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
os._exit(os.waitstatus_to_exitcode(status))
