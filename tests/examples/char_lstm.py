#!/usr/bin/env python3
"""A character LSTM on a text, trained by several peers on this machine.

    python3 char_lstm.py [FILE] [NAME=VALUE ...]

The loop is one that does not use peer.shard(): each peer cuts windows from its own part of the text.
"""
import sys

import hearsay
import torch
import torch.nn.functional as F
from torch import nn

CONTEXT, BATCH, PEERS = 64, 16, 3
VERSE = b"who hears it says it, who says it hears it, and then all of them know it. " * 200


class CharLstm(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0])


def loss_of(model, text, at):
    windows = torch.stack([text[i:i + CONTEXT + 1] for i in at.tolist()])
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def train(rank, connect, text):
    torch.manual_seed(1)  # Makes the results reproducible. Peers begin with the same model even without this line.
    model = CharLstm()
    text = torch.tensor(list(text))
    held_out, text = text[-len(text) // 10:], text[:-len(text) // 10]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    random = torch.Generator().manual_seed(100 + rank)

    def evaluate(model):
        return loss_of(model, held_out, torch.arange(0, len(held_out) - CONTEXT - 1, CONTEXT))

    with connect(model, optimizer, evaluate=evaluate) as peer:
        while not peer.over:
            part = len(text) // PEERS
            at = rank * part + torch.randint(0, part - CONTEXT - 1, (BATCH,), generator=random)
            optimizer.zero_grad()
            loss = loss_of(model, text, at)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            peer.step(loss, BATCH)
    return f"{peer.verdict}; {peer.figures().test_loss:.3f} nats a character"


if __name__ == "__main__":
    words = sys.argv[1:]
    text = VERSE if not words or "=" in words[0] else open(words.pop(0), "rb").read()
    options = {"rounds": 150, "local-steps": 2, "compress": "topk:0.05", "topology": "complete"}
    options.update(word.partition("=")[::2] for word in words)
    for one in hearsay.local(PEERS, train, text, **options):
        print(one)
