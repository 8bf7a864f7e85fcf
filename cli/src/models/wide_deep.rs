//! A linear model beside embeddings through dense layers: two classes. The number of layers is that
//! of the graph, their sizes are dimensions.

use nnz::prelude::*;

graph! {
    /// A wide part and a deep one of one layer; the output is the probability of the positive
    /// class.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param g: dense[h1, 1] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let hidden = relu(dot(embedding_bag(x, t), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`WideDeep`] with a weight for each sample.
    pub model WeightedWideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param g: dense[h1, 1] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let hidden = relu(dot(embedding_bag(x, t), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }

    /// [`WideDeep`] with two layers.
    pub model WideDeepTwoLayers {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param h_two: dense[h1, h2] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param a_two: dense[h2] = Zeros;
        param g: dense[h2, 1] = Normal { mean: 0.0, std: (1.0 / h2 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let first = relu(dot(embedding_bag(x, t), h) + a);
        let second = relu(dot(first, h_two) + a_two);
        let score = dot(x, w) + dot(second, g) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`WideDeepTwoLayers`] with a weight for each sample.
    pub model WeightedWideDeepTwoLayers {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param h_two: dense[h1, h2] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param a_two: dense[h2] = Zeros;
        param g: dense[h2, 1] = Normal { mean: 0.0, std: (1.0 / h2 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let first = relu(dot(embedding_bag(x, t), h) + a);
        let second = relu(dot(first, h_two) + a_two);
        let score = dot(x, w) + dot(second, g) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }

    /// [`WideDeep`] with three layers.
    pub model WideDeepThreeLayers {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param h_two: dense[h1, h2] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param a_two: dense[h2] = Zeros;
        param h_three: dense[h2, h3] = Normal { mean: 0.0, std: (1.0 / h2 as f64).sqrt() };
        param a_three: dense[h3] = Zeros;
        param g: dense[h3, 1] = Normal { mean: 0.0, std: (1.0 / h3 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let first = relu(dot(embedding_bag(x, t), h) + a);
        let second = relu(dot(first, h_two) + a_two);
        let third = relu(dot(second, h_three) + a_three);
        let score = dot(x, w) + dot(third, g) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`WideDeepThreeLayers`] with a weight for each sample.
    pub model WeightedWideDeepThreeLayers {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, e] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[e, h1] = Normal { mean: 0.0, std: (1.0 / e as f64).sqrt() };
        param a: dense[h1] = Zeros;
        param h_two: dense[h1, h2] = Normal { mean: 0.0, std: (1.0 / h1 as f64).sqrt() };
        param a_two: dense[h2] = Zeros;
        param h_three: dense[h2, h3] = Normal { mean: 0.0, std: (1.0 / h2 as f64).sqrt() };
        param a_three: dense[h3] = Zeros;
        param g: dense[h3, 1] = Normal { mean: 0.0, std: (1.0 / h3 as f64).sqrt() };
        param b: dense[1] = Zeros;

        let first = relu(dot(embedding_bag(x, t), h) + a);
        let second = relu(dot(first, h_two) + a_two);
        let third = relu(dot(second, h_three) + a_three);
        let score = dot(x, w) + dot(third, g) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }
}
