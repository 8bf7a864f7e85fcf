"""Logistic regression of PyTorch on LibSVM files, by an `EmbeddingBag` whose gradients are sparse: log loss on the test file, seconds of
the epochs.

    python benches/peers/pytorch.py TRAIN TEST FEATURES OPTIMIZER LEARNING_RATE BATCH_SIZE EPOCHS

OPTIMIZER is `SGD`, `Adagrad` or `SparseAdam`.
"""
import sys
import time

import torch

train, test, features, optimizer = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rate, batch_size, epochs = float(sys.argv[5]), int(sys.argv[6]), int(sys.argv[7])


def load(path):
    """Labels 0 and 1, columns from zero, values, and where each row begins in the last two, with the end."""
    labels, columns, values, starts = [], [], [], [0]
    with open(path, encoding="ascii") as lines:
        for line in lines:
            label, *entries = line.split()
            labels.append(float(label) > 0)
            for entry in entries:
                column, value = entry.split(":")
                columns.append(int(column) - 1)
                values.append(float(value))
            starts.append(len(columns))
    return torch.tensor(labels).float(), torch.tensor(columns), torch.tensor(values), torch.tensor(starts)


class Logistic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.EmbeddingBag(features, 1, mode="sum", sparse=True, include_last_offset=True)
        torch.nn.init.zeros_(self.weights.weight)

    def forward(self, data, first, end):
        _, columns, values, starts = data
        own = slice(starts[first], starts[end])
        bags = starts[first : end + 1] - starts[first]
        return self.weights(columns[own], bags, per_sample_weights=values[own]).squeeze(1)


loss = torch.nn.functional.binary_cross_entropy_with_logits
data, test_data = load(train), load(test)
model = Logistic()
optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=rate)
rows = len(data[0])
start = time.perf_counter()
for _ in range(epochs):
    for first in range(0, rows, batch_size):
        end = min(first + batch_size, rows)
        optimizer.zero_grad()
        loss(model(data, first, end), data[0][first:end]).backward()
        optimizer.step()
seconds = time.perf_counter() - start
with torch.no_grad():
    score = loss(model(test_data, 0, len(test_data[0])), test_data[0]).item()
print(f"log loss {score:.5f}, {seconds:.3f} s, {rows * epochs / seconds / 1e6:.4f} M samples/s, {torch.get_num_threads()} threads")
