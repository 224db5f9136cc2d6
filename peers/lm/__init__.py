"""Our language models beside others: equal logits, speed, and the server under load."""
