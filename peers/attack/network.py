"""Attacks on `racecars watch`: slow clients, and requests with two hosts."""

from __future__ import annotations

import re
import socket
import subprocess

from peers.attack.harness import PATIENCE, Lab


def clients(lab: Lab, tries: int) -> None:
    """Slow clients do not shut others out; a request with two hosts is refused."""
    lab.run("run", "-p", "n=1..99", "--budget", "5", "--", "sh", "-c", "echo {n}")
    command = [lab.binary, "watch", "--addr", "127.0.0.1:0"]
    server = subprocess.Popen(
        command, cwd=lab.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    slow: list[socket.socket] = []
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)(/\S*)?", line)
        assert found, line
        address, path = ("127.0.0.1", int(found[1])), found[2] or "/"
        for _ in range(tries):
            lab.tally.tries += 1
            for _ in range(64):
                client = socket.create_connection(address, timeout=PATIENCE)
                client.sendall(b"GET / HT")
                slow.append(client)
            host = f"Host: 127.0.0.1:{found[1]}\r\n"
            answer = _ask(address, f"GET {path} HTTP/1.1\r\n{host}Connection: close\r\n\r\n")
            if answer is None:
                lab.tally.hangs += 1
                lab.tally.notes.append(f"hang: no answer beside {len(slow)} slow clients")
            elif " 200 " not in answer.split("\r\n")[0]:
                lab.tally.note_wrong(f"beside {len(slow)} slow clients: {answer[:80]!r}")
            twice = _ask(address, f"GET {path} HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n")
            if twice is not None and " 4" not in twice.split("\r\n")[0]:
                lab.tally.note_wrong(f"two hosts: {twice[:80]!r}")
        if server.poll() is not None:
            lab.tally.panics += 1
            lab.tally.notes.append(f"panic: watch ended with {server.returncode}")
    finally:
        for client in slow:
            client.close()
        server.kill()
        server.wait()


def _ask(address: tuple[str, int], request: str) -> str | None:
    """The answer's beginning; `None` if there is none in time."""
    try:
        with socket.create_connection(address, timeout=PATIENCE) as client:
            client.settimeout(PATIENCE / 3)
            client.sendall(request.encode())
            return client.recv(4096).decode(errors="replace")
    except TimeoutError:
        return None
    except OSError as error:
        return f"({error})"
