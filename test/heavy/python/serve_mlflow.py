"""An MLflow server in a folder. Prints its address when it answers, and ends with all its processes when standard input ends."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

folder = sys.argv[1]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
url = f"http://127.0.0.1:{port}"
command = [os.path.join(os.path.dirname(sys.executable), "mlflow"), "server", "--workers", "1", "--port", str(port)]
store = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--default-artifact-root", folder]
environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
server = subprocess.Popen([*command, *store], stdout=sys.stderr, cwd=folder, env=environment, start_new_session=True)
try:
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit(f"mlflow ended with {server.returncode}")
            time.sleep(0.2)
    print(url, flush=True)
    sys.stdin.read()
finally:
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
