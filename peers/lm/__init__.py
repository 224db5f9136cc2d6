"""Our language models next to others: equal logits, speed, and the server under load."""
