"""Logistic regression with a penalty of 1/n and no intercept, from zero to a relative suboptimality of 1e-6, by scikit-learn: epochs, and
milliseconds of fitting in memory, the median of 9 runs by as many orders of the rows.

    cargo bench --manifest-path benches/ratios/Cargo.toml -- --problems FOLDER
    python benches/peers/variance_reduction.py FOLDER
"""
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

SUBOPTIMALITY = 1e-6
ORDERS = range(9)
warnings.filterwarnings("ignore")


def fit(x, y, seed=0, **options):
    model = LogisticRegression(C=1.0, fit_intercept=False, random_state=seed, **options)
    start = time.perf_counter()
    model.fit(x, y)
    return model.coef_[0].astype("float64"), 1e3 * (time.perf_counter() - start)


def epochs_and_time(solver, x, y, seed, enough):
    """Of the least number of epochs that is enough, with an order of its own."""
    for epochs in range(1, 1000):
        weights, elapsed = fit(x, y, seed, solver=solver, tol=0, max_iter=epochs)
        if enough(weights):
            return epochs, elapsed
    return float("inf"), float("inf")


for name, features in [("a9a", 123), ("tf-idf", 47236)]:
    x, y = load_svmlight_file(f"{sys.argv[1]}/{name}.svm", n_features=features, zero_based=False)
    # SAGA takes no wider ones.
    x.indices, x.indptr = x.indices.astype("int32"), x.indptr.astype("int32")
    signs, penalty = 2 * y - 1, 0.5 / len(y)

    def objective(weights):
        return np.logaddexp(0, -signs * (x @ weights)).mean() + penalty * weights @ weights

    optimum = objective(fit(x, y, solver="newton-cg", tol=1e-10, max_iter=1000)[0])

    def enough(weights):
        return objective(weights) <= optimum * (1 + SUBOPTIMALITY)

    for solver in ["saga", "sag"]:
        for kind in ["float32", "float64"]:
            runs = [epochs_and_time(solver, x.astype(kind), y, seed, enough) for seed in ORDERS]
            epochs, elapsed = np.median(runs, axis=0)
            print(f"{name}, scikit-learn {solver}, {kind}: {epochs:.0f} epochs, {elapsed:.1f} ms")
