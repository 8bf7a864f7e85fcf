"""PyTorch and CuPy, both with cuSPARSE beneath, on the inputs of `tests/cuda/speed.rs`: products of a csr with dense arrays, and steps of models
whose gradients are sparse. What is not installed is left out.

    NNZ_TIMES=times.tsv … speed:: --ignored
    python3 benches/peers/gpu.py times.tsv

prints for each line of `times.tsv`, a name and the seconds of ours, those of the others and how many times ours they are. The inputs are
made here again, by the same hash of the index. Without a GPU it stops, unless sizes are `--small`: then it shows on the CPU that it runs.
"""
import statistics
import sys
import time

try:
    import numpy
    import torch
except ImportError:
    torch = None
try:
    import cupy
    import cupyx.scipy.sparse
    import numpy
except ImportError:
    cupy = None

ENTRIES = 40
FACTORS = 16
HIDDEN = 32
ROUNDS = 21


def columns(n_rows, n_cols):
    """The columns of each row, ascending: an entry for each part of the columns, as `matrix` of `speed.rs` has it."""
    entry = numpy.arange(n_rows * ENTRIES, dtype=numpy.uint64)
    mixed = entry * numpy.uint64(0x9E3779B97F4A7C15)
    part = n_cols // ENTRIES
    within = (mixed >> numpy.uint64(32)) % numpy.uint64(part)
    return (entry % numpy.uint64(ENTRIES) * numpy.uint64(part) + within).astype(numpy.int64)


def median(call, wait):
    """Seconds of a call, each waited for."""
    times = []
    for _ in range(ROUNDS + 1):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    # The first one makes what later ones have.
    return statistics.median(times[1:])


class Torch:
    name = "PyTorch"

    def __init__(self):
        self.on_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.on_gpu else "cpu")

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def product(self, n_rows, n_cols, width, transposed):
        """csr · dense, or csrᵀ · dense with the transposed matrix made before: of a batch that would have to be made first."""
        starts = torch.arange(0, n_rows * ENTRIES + 1, ENTRIES)
        ids = torch.from_numpy(columns(n_rows, n_cols))
        x = torch.sparse_csr_tensor(starts, ids, torch.ones(len(ids)), (n_rows, n_cols))
        if transposed:
            x = x.to_sparse_csc()
            x = torch.sparse_csr_tensor(x.ccol_indices(), x.row_indices(), x.values(), (n_cols, n_rows))
        x = x.to(self.device)
        right = torch.zeros(x.shape[1], width, device=self.device)
        return median(lambda: x @ right, self.wait)

    def step(self, model, rule, n_rows, n_cols):
        """A step on a batch that is copied from pinned memory before it."""
        ids = torch.from_numpy(columns(n_rows, n_cols).astype(numpy.int32))
        bags = torch.arange(0, n_rows * ENTRIES, ENTRIES, dtype=torch.int32)
        values, labels = torch.ones(len(ids)), torch.zeros(n_rows)
        batch = [ids, bags, values, labels]
        if self.on_gpu:
            batch = [array.pin_memory() for array in batch]
        net = {"Logistic": Logistic, "Machine": Machine, "WideDeep": WideDeep}[model](n_cols).to(self.device)
        make = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}[rule]
        # SparseAdam takes no dense gradients: what is dense has a rule of its own.
        tables = [of.weight for of in net.modules() if getattr(of, "sparse", False)]
        others = [of for of in net.parameters() if all(of is not table for table in tables)]
        rules = [make(tables, lr=0.01), torch.optim.SGD(others, lr=0.01)]
        loss = torch.nn.functional.binary_cross_entropy_with_logits

        def step():
            ids, bags, values, labels = (array.to(self.device, non_blocking=True) for array in batch)
            for of in rules:
                of.zero_grad()
            loss(net(ids, bags, values), labels).backward()
            for of in rules:
                of.step()

        return median(step, self.wait)


if torch:

    class Logistic(torch.nn.Module):
        def __init__(self, n_cols):
            super().__init__()
            self.weights = torch.nn.EmbeddingBag(n_cols, 1, mode="sum", sparse=True)
            torch.nn.init.zeros_(self.weights.weight)
            self.bias = torch.nn.Parameter(torch.zeros(1))

        def forward(self, ids, bags, values):
            return self.weights(ids, bags, per_sample_weights=values).squeeze(1) + self.bias

    class Machine(Logistic):
        """With interactions. Rows have equally many entries, all of them 1."""

        def __init__(self, n_cols):
            super().__init__(n_cols)
            self.factors = torch.nn.Embedding(n_cols, FACTORS, sparse=True)
            torch.nn.init.normal_(self.factors.weight, std=0.1)

        def forward(self, ids, bags, values):
            rows = self.factors(ids.view(len(bags), ENTRIES))
            pairs = rows.sum(1).square() - rows.square().sum(1)
            return super().forward(ids, bags, values) + 0.5 * pairs.sum(1)

    class WideDeep(Logistic):
        def __init__(self, n_cols):
            super().__init__(n_cols)
            self.bags = torch.nn.EmbeddingBag(n_cols, FACTORS, mode="sum", sparse=True)
            self.hidden = torch.nn.Linear(FACTORS, HIDDEN)
            self.out = torch.nn.Linear(HIDDEN, 1, bias=False)

        def forward(self, ids, bags, values):
            deep = self.out(torch.relu(self.hidden(self.bags(ids, bags)))).squeeze(1)
            return super().forward(ids, bags, values) + deep


class Cupy:
    name = "CuPy"

    def wait(self):
        cupy.cuda.Device().synchronize()

    def product(self, n_rows, n_cols, width, transposed):
        starts = cupy.arange(0, n_rows * ENTRIES + 1, ENTRIES, dtype=cupy.int32)
        ids = cupy.asarray(columns(n_rows, n_cols).astype(numpy.int32))
        x = cupyx.scipy.sparse.csr_matrix((cupy.ones(len(ids), cupy.float32), ids, starts), (n_rows, n_cols))
        if transposed:
            x = x.T.tocsr()
        right = cupy.zeros((x.shape[1], width), cupy.float32)
        return median(lambda: x @ right, self.wait)


def measured(peer, name, *sizes):
    """Of a line of ours; None of what the peer has not, or has no memory for."""
    sizes = [int(size) for size in sizes]
    try:
        match name.split():
            case [("product" | "transposed") as which]:
                return peer.product(*sizes, which == "transposed")
            # The same models without fusion are ours alone.
            case [model, rule] if hasattr(peer, "step") and not model.endswith("Off"):
                return peer.step(model, rule, *sizes)
    except Exception as error:  # Of one line the others are none the worse.
        print(f"{peer.name} {name} {sizes}: {type(error).__name__}: {error}", file=sys.stderr)
    return None


def main():
    paths = [word for word in sys.argv[1:] if word != "--small"]
    is_small = "--small" in sys.argv
    if len(paths) != 1:
        sys.exit(__doc__)
    peers = []
    if torch and (torch.cuda.is_available() or is_small):
        peers.append(Torch())
        print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name() if torch.cuda.is_available() else 'the CPU'}")
    if cupy and cupy.cuda.is_available():
        peers.append(Cupy())
        print(f"CuPy {cupy.__version__}")
    if not peers:
        print("SKIPPED: neither PyTorch nor CuPy is installed with a GPU")
        return
    head = "".join(f" {peer.name + ' ms':>12} {'ratio':>7}" for peer in peers)
    print(f"{'':>20} {'sizes':>28} {'ours ms':>10}{head}")
    with open(paths[0], encoding="ascii") as lines:
        for line in lines:
            name, sizes, seconds = line.rstrip("\n").split("\t")
            ours = float(seconds)
            row = f"{name:>20} {sizes:>28} {ours * 1e3:>10.3f}"
            for peer in peers:
                theirs = measured(peer, name, *sizes.split())
                row += f" {'-':>12} {'-':>7}" if theirs is None else f" {theirs * 1e3:>12.3f} {theirs / ours:>7.2f}"
            print(row, flush=True)


main()
