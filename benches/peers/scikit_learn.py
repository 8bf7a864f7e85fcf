"""Logistic regression of scikit-learn on LibSVM files: log loss and AUC on the test file, seconds of fitting.

    python benches/peers/scikit_learn.py TRAIN TEST FEATURES L2
"""
import sys
import time

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score

train, test, features, l2 = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])


def load(path):
    x, y = load_svmlight_file(path, n_features=features, zero_based=False)
    # SAGA takes no wider ones.
    x.indices, x.indptr = x.indices.astype("int32"), x.indptr.astype("int32")
    return x, y


x, y = load(train)
x_test, y_test = load(test)
models = {
    "LogisticRegression": LogisticRegression(C=1 / (l2 * len(y)), max_iter=1000),
    "LogisticRegression saga": LogisticRegression(C=1 / (l2 * len(y)), solver="saga", max_iter=20),
    "SGDClassifier": SGDClassifier(loss="log_loss", alpha=l2, max_iter=5, tol=None, random_state=0),
}
for name, model in models.items():
    start = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - start
    p = model.predict_proba(x_test)[:, 1]
    print(f"{name}: log loss {log_loss(y_test, p):.5f}, AUC {roc_auc_score(y_test, p):.5f}, {seconds:.3f} s")
