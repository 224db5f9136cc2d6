"""Equal logits: our models next to `transformers` on the same files.

usage: python -m peers.lm.parity RACECARS MODEL.gguf...

Every comparison is made without and with a random prompt, with texts of different lengths in one
batch, one of them longer than the window of Gemma's layers. The largest difference is printed next
to the largest logit, and must be below 1e-4 of it.
"""

import sys
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import AutoModelForCausalLM, AutoTokenizer, RobertaConfig, RobertaForMaskedLM

from peers.lm.service import Service, serve

RACECARS, *FILES = sys.argv[1:]
WORDS = ["terrible", "great", "good", "bad", "fun", "boring"]
TEXTS = [
    "The plot is thin, but the actors carry it with ease.",
    "Two hours that I will not get back.",
    "Nothing happens in 1999, and it happens to 12 flat characters - again and again, until a ship "
    "arrives, and then nothing happens there either; I asked for my money, and got a coupon.",
    "Bravo!",
    "Voilà, une « comédie » naïve… 映画は好き。\n\n  What's more, they're back.",
]
# For models with a long context.
LONG = "\n".join(f"Scene {i}: they meet, they part, and nobody says why." for i in range(50))
AFTER = " All in all, it was"
TAIL = ", I think."


def compare(name: str, ours: list[list[float]], theirs: list[torch.Tensor]) -> None:
    difference = max(
        float((torch.tensor(row) - other).abs().max())
        for row, other in zip(ours, theirs, strict=True)
    )
    size = max(float(other.abs().max()) for other in theirs)
    print(f"{name:<40} {difference:.1e} of {size:.1f}")
    assert difference < 1e-4 * max(size, 1.0), name


def prompts(hidden: int, scale: float) -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.zeros(0, hidden), scale * torch.randn(7, hidden)]


def check(
    service: Service, name: str, theirs: list[list[torch.Tensor]], scale: float, texts: list[str]
) -> None:
    """Compares the logits of each prompt for all texts at once, and for one at a time."""
    parts = [{"before": text, "after": AFTER, "tail": TAIL} for text in texts]
    for position in ("suffix", "prefix"):
        if position == "prefix":
            parts = [{"after": text + AFTER, "tail": TAIL} for text in texts]
        batch = service.upload(texts=parts, words=WORDS)
        for prompt in prompts(service.model()["hidden"], scale):
            [ours] = service.logits(batch, [prompt.flatten().tolist()])
            where = f"{name}, {position}, {len(prompt)} tokens"
            compare(where, ours, theirs.pop(0))
            for i, part in enumerate(parts):
                alone = service.upload(texts=[part], words=WORDS)
                [row] = service.logits(alone, [prompt.flatten().tolist()])
                compare(f"  text {i} alone", row, [torch.tensor(ours[i])])
                service.remove(alone)
        service.remove(batch)


def causal(path: Path) -> None:
    """SmolLM2, Gemma 3, or another GGUF file."""
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)

    def ids(text: str) -> list[int]:
        found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    tokens = [ids(" " + word) for word in WORDS]
    assert all(len(token) == 1 for token in tokens), tokens
    words = [token[0] for token in tokens]
    # Those at the beginning of every sequence.
    begin = tokenizer("")["input_ids"]
    table = model.get_input_embeddings()
    scale = float(table.weight.detach().std())

    def logits(pieces: list[str | torch.Tensor]) -> torch.Tensor:
        rows = [
            table(torch.tensor(ids(piece))) if isinstance(piece, str) else piece
            for piece in pieces
            if len(piece)
        ]
        if begin:
            rows.insert(0, table(torch.tensor(begin)))
        return model(inputs_embeds=torch.cat(rows)[None]).logits[0, -1, words]

    with torch.no_grad(), serve(RACECARS, str(path)) as service:
        theirs = [
            [
                logits([text, prompt, AFTER] if is_suffix else [prompt, text + AFTER])
                for text in [*TEXTS, LONG]
            ]
            for is_suffix in (True, False)
            for prompt in prompts(model.config.hidden_size, scale)
        ]
        check(service, path.stem[:12], theirs, scale, [*TEXTS, LONG])


def write_roberta(folder: Path) -> RobertaForMaskedLM:
    """A small random RoBERTa with random biases and norms."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*TEXTS, *([" " + " ".join(WORDS)] * 50)], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
    )
    model = RobertaForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


def masked() -> None:
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        model = write_roberta(folder)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        words = [tokenizer.encode(" " + word).ids for word in WORDS]
        assert all(len(word) == 1 for word in words), words
        table = model.get_input_embeddings()
        scale = float(table.weight.detach().std())

        def tokens(text: str) -> torch.Tensor:
            return table(torch.tensor(tokenizer.encode(text).ids, dtype=torch.long))

        begin, end, mask = (
            table(torch.tensor([tokenizer.token_to_id(token)]))
            for token in ("<s>", "</s>", "<mask>")
        )

        def logits(prompt: torch.Tensor, is_suffix: bool) -> list[torch.Tensor]:
            """All texts in one padded batch."""
            rows, places = [], []
            for text in TEXTS:
                pieces = [tokens(text), prompt, tokens(AFTER)]
                first = pieces if is_suffix else [prompt, tokens(text + AFTER)]
                before = torch.cat([begin, *first])
                places.append(len(before))
                rows.append(torch.cat([before, mask, tokens(TAIL), end]))
            padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            lengths = torch.tensor([len(row) for row in rows])
            seen = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
            found = model(inputs_embeds=padded, attention_mask=seen).logits
            return [found[i, place, [w[0] for w in words]] for i, place in enumerate(places)]

        with serve(RACECARS, name) as service:
            theirs = [
                logits(prompt, is_suffix)
                for is_suffix in (True, False)
                for prompt in prompts(model.config.hidden_size, scale)
            ]
            check(service, "RoBERTa", theirs, scale, TEXTS)


if __name__ == "__main__":
    masked()
    for file in FILES:
        causal(Path(file))
    print("equal")
