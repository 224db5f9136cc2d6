"""A running `racecars lm serve`, and requests to it."""

import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any


class Service:
    """A service at a URL."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.pid = pid

    def request(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> Any:
        request = urllib.request.Request(
            self.url + path, data=body, method=method, headers={"Content-Type": kind}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def model(self) -> Any:
        return self.request("GET", "/v1/model")

    def upload(self, **upload: Any) -> str:
        answer = self.request("POST", "/v1/batches", json.dumps(upload).encode())
        return str(answer["batch"])

    def logits(self, batch: str, prompts: list[list[float]]) -> list[list[list[float]]]:
        body = json.dumps({"prompts": prompts, "logits": True}).encode()
        answer = self.request("POST", f"/v1/batches/{batch}/evaluate", body)
        return [result["logits"] for result in answer["results"]]

    def remove(self, batch: str) -> None:
        self.request("DELETE", f"/v1/batches/{batch}")


@contextlib.contextmanager
def serve(racecars: str, model: str, *options: str) -> Iterator[Service]:
    """Serves a model at a free port of this machine."""
    command = [racecars, "lm", "serve", "--model", model, "--addr", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), "the service did not start"
            yield Service(url, process.pid)
        finally:
            process.terminate()
