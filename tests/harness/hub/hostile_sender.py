"""A tenant that floods a web server: a process of its own, so that it takes nothing from the test's event loop.

python hostile_sender.py PORT CA_FILE SENDERS FILE...    posts the files' bytes to /pods over and over, until killed
"""

import http.client
import os
import ssl
import sys
import threading
import time
from pathlib import Path

PAUSE_S = 0.1  # an API server does not make reviews faster; and the machine of the tests has two cores for all


def send(port: int, context: ssl.SSLContext, bodies: list[bytes], turn: int) -> None:
    """One sender, for ever."""
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=10)
    while True:
        turn += 1
        try:
            connection.request("POST", "/pods", bodies[turn % len(bodies)])
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
        time.sleep(PAUSE_S)


def main() -> None:
    """Starts the senders."""
    port, authority, senders, *files = sys.argv[1:]
    os.nice(5)  # in a cluster it would be on another machine
    context = ssl.create_default_context(cafile=authority)
    bodies = [Path(file).read_bytes() for file in files]
    threads = [threading.Thread(target=send, args=(int(port), context, bodies, n)) for n in range(int(senders))]
    for thread in threads:
        thread.start()
    print("sending", flush=True)


if __name__ == "__main__":
    main()
