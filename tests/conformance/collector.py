"""What `--otlp` pushes, as an OpenTelemetry collector of OpenTelemetry's own making takes it.

The collector is built from `collector/`, once, with Go. Its last word on each metric is held against the summary of the
run: the requests, and how many response times the histogram has.

usage: collector.py TIDEMARK
"""

import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
NOT_RUN = 75
PATIENCE_S = 60
CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}
"""


def built(target: pathlib.Path) -> pathlib.Path:
    """The collector's program, built unless it is there."""
    program = target / "collector"
    # modules stay with the other tools of the tests; no other version of Go is fetched
    environment = {**os.environ, "GOPATH": str(target / "go"), "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw"}
    command = ["go", "build", "-o", str(program), "."]
    done = subprocess.run(command, cwd=HERE / "collector", env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"not run: the collector cannot be built here: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        sys.exit(NOT_RUN)
    return program


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/good" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_it_listens(port: int, collector: subprocess.Popen) -> None:
    began = time.monotonic()
    while collector.poll() is None and time.monotonic() - began < PATIENCE_S:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit("the collector does not start")


def last(text: str, metric: str, figure: str) -> int:
    """The sum over all labels in the last push that has the metric."""
    block = re.split(r"Descriptor:\s*\n", text.rpartition(f"-> Name: {metric}\n")[2])[0]
    return sum(int(float(value)) for value in re.findall(rf"^{figure}: (\S+)$", block, re.MULTILINE))


def main(tidemark: str) -> None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "../../target")).resolve() / "conformance/collector"
    target.mkdir(parents=True, exist_ok=True)
    program = built(target)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config, log = pathlib.Path(folder, "config.yaml"), pathlib.Path(folder, "log")
        config.write_text(CONFIG.format(port=port))
        with log.open("w") as output:
            collector = subprocess.Popen([program, "--config", f"file:{config}"], stdout=output, stderr=output)
        try:
            wait_until_it_listens(port, collector)
            url = f"http://127.0.0.1:{server.server_port}/good"
            command = [tidemark, "hit", url, "-c", "3", "-n", "500", "--json"]
            command += ["--otlp", f"http://127.0.0.1:{port}"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S * 2)
        finally:
            collector.terminate()
            collector.wait(PATIENCE_S)
        told = log.read_text()
    # a push that failed is a note that names what it was to
    if run.returncode != 0 or f"127.0.0.1:{port}" in run.stderr:
        sys.exit(f"the run: status {run.returncode}\n{run.stderr}")
    result = json.loads(run.stdout)
    times, verdict = last(told, "tidemark.response_time", "Count"), last(told, "tidemark.verdict", "Value")
    print(f"{result['requests']} requests, {times} response times at the collector, verdict {verdict}")
    if not times == result["requests"] == 500 or verdict != 1 or "error" in told.lower():
        sys.exit("the collector was told something else; its log:\n" + told[-4000:])


if __name__ == "__main__":
    main(sys.argv[1])
