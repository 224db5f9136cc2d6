"""The time to evaluate a prompt: ours next to a PyTorch forward of the same batch, in one run.

usage: python -m peers.lm.speed THROUGHPUT MODEL.gguf [--tokens 5] [--threads N]

THROUGHPUT is the example of racecars-lm. All use the same file, texts, prompt and cores, and single
precision. PyTorch gets the texts as one padded batch, and computes the logits of the last position
only; if the prompt follows the text, it also gets the cached keys and values of the texts, as ours
does, and if the prompt is before the texts, it is measured both with and without computing the
prompt's keys and values once for all texts, as ours does. llama.cpp gets whole texts after as many
words as the prompt has tokens, since its server does not accept embeddings, with the weights of the
file (4 bits) and no cache between requests. Rounds alternate, and the best of each counts.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import xllamacpp
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

TEXTS = [
    f"{start} {middle} {end}"
    for start in ("A film that", "Two hours in which the director", "This story")
    for middle in ("never finds its feet and", "wears its heart on its sleeve, and")
    for end in (
        "is over before it begins .",
        "leaves everyone in the room - critics , children , the projectionist - wide awake .",
        "has one good joke , which it tells four times .",
        "goes on .",
        "earns every tear that it asks for , and a few more besides .",
    )
] + ["Bravo .", "No ."]
AFTER = " It was"


class Torch:
    """The same model in PyTorch."""

    def __init__(self, path: Path, tokens: int) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        ).eval()
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        table = self.model.get_input_embeddings()
        hidden = self.model.config.hidden_size
        self.prompt = float(table.weight.detach().std()) * torch.randn(tokens, hidden)

        def embed(text: str) -> torch.Tensor:
            tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
            found: torch.Tensor = table(torch.tensor(tokens))
            return found

        after = embed(AFTER)
        texts = [embed(text) for text in TEXTS]
        # With the tokens at the beginning of every sequence, if the model has any.
        self.start = self.prompt
        if begin := tokenizer("")["input_ids"]:
            self.start = torch.cat([table(torch.tensor(begin)), self.prompt])
        # Padded on the left, so that the last position is the last token of every text.
        self.texts, self.texts_seen = pad(texts)
        self.ends = torch.cat([self.prompt, after]).repeat(len(TEXTS), 1, 1)
        self.rest, self.rest_seen = pad([torch.cat([text, after]) for text in texts])
        self.whole, self.whole_seen = pad([torch.cat([self.start, text, after]) for text in texts])
        cache = self.model(
            inputs_embeds=self.texts, attention_mask=self.texts_seen, use_cache=True
        ).past_key_values
        self.cache = [(layer.keys.clone(), layer.values.clone()) for layer in cache.layers]

    def prefix(self) -> None:
        self.model(
            inputs_embeds=self.whole,
            attention_mask=self.whole_seen,
            position_ids=places(self.whole_seen),
            use_cache=False,
            logits_to_keep=1,
        )

    def prefix_once(self) -> None:
        prompt = self.model.model(inputs_embeds=self.start[None], use_cache=True).past_key_values
        cache = DynamicCache()
        for i, layer in enumerate(prompt.layers):
            keys, values = (x.repeat(len(TEXTS), 1, 1, 1) for x in (layer.keys, layer.values))
            cache.update(keys, values, i)
        length = self.rest.shape[1]
        started = torch.ones(len(TEXTS), len(self.start), dtype=torch.long)
        seen = torch.cat([started, self.rest_seen], 1)
        self.model(
            inputs_embeds=self.rest,
            attention_mask=seen,
            position_ids=places(seen)[:, -length:],
            past_key_values=cache,
            logits_to_keep=1,
        )

    def suffix(self) -> None:
        length = self.ends.shape[1]
        seen = torch.cat([self.texts_seen, torch.ones(len(TEXTS), length, dtype=torch.long)], 1)
        cache = DynamicCache()
        for i, (keys, values) in enumerate(self.cache):
            cache.update(keys, values, i)
        self.model(
            inputs_embeds=self.ends,
            attention_mask=seen,
            position_ids=places(seen)[:, -length:],
            past_key_values=cache,
            logits_to_keep=1,
        )


class LlamaCpp:
    """The same file in llama.cpp."""

    def __init__(self, path: Path, tokens: int, threads: int) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = len(TEXTS)
        params.n_ctx = 256 * len(TEXTS)
        params.n_batch = params.n_ubatch = 2048
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        self.server = xllamacpp.Server(params)
        self.request = {
            "prompt": [" film" * tokens + " " + text + AFTER for text in TEXTS],
            "n_predict": 1,
            "cache_prompt": False,
        }

    def prefix(self) -> None:
        answer = self.server.handle_completions(self.request)
        assert "error" not in answer, answer


def pad(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row in rows)
    padded = [torch.nn.functional.pad(row, (0, 0, longest - len(row), 0)) for row in rows]
    seen = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.stack(padded), torch.tensor(seen)


def places(seen: torch.Tensor) -> torch.Tensor:
    return (seen.cumsum(1) - 1).clamp(min=0)


def seconds_of(work: Callable[[], None], seconds: float) -> float:
    work()
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < seconds:
        work()
        count += 1
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("throughput")
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    environment = {**os.environ, "RAYON_NUM_THREADS": str(given.threads)}
    best: dict[tuple[str, str], float] = {}
    with torch.no_grad(), tempfile.NamedTemporaryFile("w", suffix=".txt") as texts:
        texts.write("\n".join(TEXTS))
        texts.flush()
        theirs = Torch(given.model, given.tokens)
        other = LlamaCpp(given.model, given.tokens, given.threads)
        for _ in range(given.rounds):
            for position, work in (("prefix", theirs.prefix), ("suffix", theirs.suffix)):
                command = [given.throughput, str(given.model), texts.name, position]
                command += [str(given.tokens), "1", str(given.seconds)]
                answer = subprocess.run(
                    command, check=True, capture_output=True, text=True, env=environment
                ).stdout
                found = {
                    "ours": float(json.loads(answer)["seconds_per_prompt"]),
                    "PyTorch": seconds_of(work, given.seconds),
                }
                if position == "prefix":
                    found["PyTorch, prompt once"] = seconds_of(theirs.prefix_once, given.seconds)
                    found["llama.cpp"] = seconds_of(other.prefix, given.seconds)
                for who, seconds in found.items():
                    key = (position, who)
                    best[key] = min(seconds, best.get(key, seconds))
    print(f"{len(TEXTS)} texts, {given.tokens} tokens of prompt, {given.threads} threads")
    for (position, who), seconds in best.items():
        ratio = seconds / best[position, "ours"]
        print(f"{position}: {who} {seconds:.3f} s per prompt, {ratio:.2f} of ours")


if __name__ == "__main__":
    main()
