#!/usr/bin/env python3
"""A stand-in for a language model, so that the example runs offline and costs nothing.

It speaks OpenAI's chat format and behaves like a small model that judges films: it counts words.
How good its answers are depends on the prompt, as with a real model:

- unless it is told which words to answer with, or sees examples, it answers in a sentence;
- it notices "not" only if the prompt says so, or an example has it;
- the last example pulls it to its own label where a text is unclear;
- a temperature makes it guess.

    python server.py [PORT]       # 0 is any that is free
"""

from __future__ import annotations

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = [
    "warm",
    "clever",
    "funny",
    "moving",
    "bright",
    "gripping",
    "tender",
    "sharp",
    "lively",
    "charming",
]
BAD = ["dull", "clumsy", "loud", "hollow", "tired", "messy", "cold", "lazy", "bland", "confused"]


def judge(prompt: str, temperature: float) -> str:
    *before, text = prompt.split("Review: ")
    shown = before[1:] if before else []
    text = text.split("\n")[0]
    head = (before[0] if before else "").lower()
    words = text.lower().replace(",", " ").split()
    sees_not = "negation" in head or any(" not " in example for example in shown)
    score, sign = 0, 1
    for word in words:
        if word == "not":
            sign = -1 if sees_not else 1
        elif word in GOOD or word in BAD:
            score += sign * (1 if word in GOOD else -1)
            sign = 1
    chance = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16) / 0x100000000
    if temperature > 0 and chance < temperature / 2:
        score = -score
    if score == 0:
        score = 1 if not shown or "positive" in shown[-1] else -1
    word = "positive" if score > 0 else "negative"
    knows_words = ("positive" in head and "negative" in head) or len(shown) >= 2
    return word if knows_words else f"I would say that this review is {word}."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Header and body are sent together: apart, the client's side waits 40 ms for the second.
    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(message["content"] for message in body["messages"])
        text = judge(prompt, float(body.get("temperature", 0)))
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        self.reply({"choices": [{"message": {"content": text}}], "usage": usage})

    def reply(self, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8799
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
