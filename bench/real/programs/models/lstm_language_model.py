"""A word language model with an LSTM, after PyTorch's example: hidden state carried on, gradients clipped."""

import math
import time

import torch
from torch import nn

WORDS, LENGTH, BATCH = 2000, 35, 20


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.2)
        self.embedding = nn.Embedding(WORDS, 200)
        self.lstm = nn.LSTM(200, 200, 2, dropout=0.2)
        self.decoder = nn.Linear(200, WORDS)

    def forward(self, words, hidden):
        output, hidden = self.lstm(self.dropout(self.embedding(words)), hidden)
        return nn.functional.log_softmax(self.decoder(self.dropout(output)).view(-1, WORDS), 1), hidden

    def first_hidden(self):
        weight = next(self.parameters())
        return weight.new_zeros(2, BATCH, 200), weight.new_zeros(2, BATCH, 200)


def get_batch(source, at):
    return source[at : at + LENGTH], source[at + 1 : at + 1 + LENGTH].reshape(-1)


torch.manual_seed(1111)
source = torch.randint(0, WORDS, (20_000, BATCH))
model, criterion = Model(), nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=20)

for epoch in range(1000):
    hidden, total, began = model.first_hidden(), 0.0, time.time()
    for batch, at in enumerate(range(0, source.size(0) - 1 - LENGTH, LENGTH)):
        data, targets = get_batch(source, at)
        model.zero_grad()
        hidden = tuple(one.detach() for one in hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item()
        if batch % 20 == 19:
            perplexity = math.exp(min(total / 20, 20))
            mean, spent = total / 20, (time.time() - began) * 1000 / 20
            print(
                f"epoch {epoch} {batch} ms/batch {spent:.1f} loss {mean:.2f} ppl {perplexity:.1f}",
                flush=True,
            )
            total, began = 0.0, time.time()
