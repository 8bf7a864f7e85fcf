// Grown out of the operator table by `NNZ_BLESS=1 cargo test -p sparse-macros grown`.

grown! {
    grown_0, [x, ones], [d], false {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(x, w);
        let v2 = slice_like(v1, v1, axes = 1);
        let v3 = max(v0, axis = 0, exclude = true);
        let v4 = dense(v3);
        let v5 = sort(v4, descending = true);
        let v6 = greater_equal(v4, v5);
        let v7 = log_softmax(v2, axis = 1);
        let v8 = dense(v7);
        let v9 = row_sparse(a);
        let v10 = flatten(v6);
        let v11 = square_sum(v10, axis = 0);
        let v12 = outer(v11, v11);
        loss mean(square(v8));
        loss mean(square(v9));
        loss mean(square(v12));
        output v12;
    }

    grown_1, [x, ones], [d], true {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(x, v);
        let v2 = softmax(v1);
        let v3 = exp(v0);
        loss mean(square(v2));
        loss mean(square(v3));
        output v3;
    }

    grown_2, [x, ids], [d, e], true {
        input x: csr[n, d];
        input ids: dense<u32>[n];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        param b: dense[3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = embedding(ids, t);
        let v1 = dot(x, v);
        let v2 = not_equal(v1, b);
        let v3 = multiply(v2, b);
        let v4 = cos(v3);
        loss mean(square(v0));
        loss mean(square(v4));
        output v4;
    }

    grown_3, [ones, z], [d], true {
        input ones: csr<unit>[n, d];
        input z: dense[n, 3];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        param b: dense[3] = Normal { mean: 0.0, std: 0.6 };
        param s: dense[] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(z, a);
        let v2 = mean(v0, axis = 1);
        let v3 = log2(v2);
        let v4 = dense(a);
        let v5 = rcbrt(v4);
        let v6 = stack(v5, v5);
        let v7 = hypot(s, v6);
        let v8 = slice_like(v5, v7, axes = 0, from_end = true);
        let v9 = cbrt(v8);
        let v10 = slice(v9, begin = [3], end = [2, 3]);
        let v11 = mean(b);
        let v12 = less(w, s);
        loss mean(square(v1));
        loss mean(square(v3));
        loss mean(square(v10));
        loss mean(square(v11));
        loss mean(square(v12));
        output v12;
    }

    grown_4, [x, z, ids, y], [d, e], false {
        input x: csr[n, d];
        input z: dense[n, 3];
        input ids: dense<u32>[n];
        label y: dense[n, 1];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = pairwise_interaction(x, v);
        let v1 = embedding(ids, t);
        let v2 = row_sparse(v0);
        let v3 = logistic(v0, y);
        let v4 = prod(a, exclude = true);
        let v5 = mean(v4, axis = 0, keepdims = true);
        let v6 = sign(v5);
        let v7 = sign_ste(a);
        let v8 = multiply(v7, 2.0);
        let v9 = slice_like(v8, v8, axes = [1]);
        let v10 = logistic(v1, z);
        loss mean(square(v2));
        loss v3;
        loss mean(square(v6));
        loss mean(square(v9));
        loss v10;
        output v10;
    }

    grown_5, [x, z], [d], true {
        input x: csr[n, d];
        input z: dense[n, 3];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(z, a);
        let v1 = embedding_bag(x, v);
        let v2 = square_sum(v1, axis = -1, keepdims = true, exclude = true);
        let v3 = arccos(v2);
        let v4 = exp(v3);
        let v5 = norm(v4, axis = [1], exclude = true);
        let v6 = mean(v4, axis = 0, exclude = true);
        loss mean(square(v0));
        loss mean(square(v5));
        loss mean(square(v6));
        output v6;
    }

    grown_6, [z, ids], [e], true {
        input z: dense[n, 3];
        input ids: dense<u32>[n];
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        param s: dense[] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(z, a);
        let v1 = embedding(ids, t);
        let v2 = csr(v1);
        let v3 = erfinv(v2);
        let v4 = flatten(s);
        let v5 = maximum(v4, v4);
        let v6 = square(v5);
        let v7 = topk(v6, k = 1, smallest = true);
        let v8 = arctanh(v5);
        let v9 = sum(v8, axis = [1]);
        loss mean(square(v0));
        loss mean(square(v3));
        loss mean(square(v7));
        loss mean(square(v9));
        output v9;
    }

    grown_7, [ones, z], [d], true {
        input ones: csr<unit>[n, d];
        input z: dense[n, 3];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(z, a);
        let v2 = zeros_like(v1);
        let v3 = csr(v2);
        let v4 = smooth_l1(v3, scale = 0.0);
        let v5 = slice(a, begin = [-1, _]);
        let v6 = csr(v0);
        let v7 = zeros_like(v6);
        let v8 = dense(v7);
        let v9 = softmax(v1);
        loss mean(square(v4));
        loss mean(square(v5));
        loss mean(square(v8));
        loss mean(square(v9));
        output v9;
    }

    grown_8, [x, ids], [d, e], true {
        input x: csr[n, d];
        input ids: dense<u32>[n];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = embedding(ids, t);
        let v1 = pairwise_interaction(x, v);
        let v2 = slice_like(v0, v0, axes = [1], from_end = true);
        let v3 = slice_like(v2, v1);
        let v4 = logical_or(v3, v3);
        let v5 = transpose(v1);
        let v6 = logical_or(v5, v1);
        let v7 = square_sum(v6, axis = 0, keepdims = true, exclude = true);
        let v8 = hypot(0.3, v7);
        loss mean(square(v4));
        loss mean(square(v8));
        output v8;
    }

    grown_9, [ones, z], [d], true {
        input ones: csr<unit>[n, d];
        input z: dense[n, 3];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param s: dense[] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(ones, v);
        let v2 = slice_like(v1, v1, axes = 0);
        let v3 = transpose(v2);
        let v4 = dense(v1);
        let v5 = power(s, z);
        let v6 = radians(v3);
        let v7 = mean(v6, axis = -1, keepdims = true);
        let v8 = row_sparse(v3);
        let v9 = csr(v7);
        let v10 = tan(v9);
        let v11 = row_sparse(z);
        loss mean(square(v0));
        loss mean(square(v4));
        loss mean(square(v5));
        loss mean(square(v8));
        loss mean(square(v10));
        loss mean(square(v11));
        output v11;
    }

    grown_10, [x], [d], true {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, w);
        let v1 = pairwise_interaction(x, v);
        let v2 = topk(v1);
        let v3 = squeeze(v2, axis = [1]);
        let v4 = log10(v3);
        let v5 = sinh(v4);
        let v6 = zeros_like(v0);
        loss mean(square(v5));
        loss mean(square(v6));
        output v6;
    }

    grown_11, [x, z, y], [d], true {
        input x: csr[n, d];
        input z: dense[n, 3];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, w);
        let v1 = dot(z, a);
        let v2 = transpose(v0);
        let v3 = csr(v2);
        let v4 = transpose(v3);
        let v5 = arctan(v4);
        let v6 = mean(v2, axis = [0, 1], keepdims = true);
        let v7 = squeeze(v6);
        let v8 = squeeze(v6);
        let v9 = row_sparse(y);
        let v10 = csr(a);
        let v11 = concat(v10, v10);
        let v12 = transpose(v11);
        loss mean(square(v1));
        loss mean(square(v5));
        loss mean(square(v7));
        loss mean(square(v8));
        loss mean(square(v9));
        loss mean(square(v12));
        output v12;
    }

    grown_12, [x, ones], [d], true {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, w);
        let v1 = dot(ones, v);
        let v2 = csr(v1);
        let v3 = nansum(v1, axis = [0, 1], exclude = true);
        let v4 = slice(v3, step = [-1]);
        let v5 = softmax(v3, axis = 1);
        let v6 = flatten(v5);
        let v7 = slice_axis(v6, axis = 1, end = [_]);
        let v8 = softplus(v4);
        let v9 = transpose(v7);
        let v10 = dense(v3);
        let v11 = arccosh(v10);
        loss mean(square(v0));
        loss mean(square(v2));
        loss mean(square(v8));
        loss mean(square(v9));
        loss mean(square(v11));
        output v11;
    }

    grown_13, [x, ones], [d], true {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param b: dense[3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = pairwise_interaction(x, v);
        let v2 = reshape(v1, shape = [-1]);
        let v3 = row_sparse(v2);
        let v4 = minimum(b, v1);
        let v5 = zeros_like(v4);
        let v6 = log_softmax(v5, axis = -1);
        let v7 = arctanh(v4);
        let v8 = topk(v7, smallest = true);
        let v9 = dense(ones);
        loss mean(square(v0));
        loss mean(square(v3));
        loss mean(square(v6));
        loss mean(square(v8));
        loss mean(square(v9));
        output v9;
    }

    grown_14, [x, y, weight], [d], false {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        param b: dense[3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = embedding_bag(x, v);
        let v1 = pairwise_interaction(x, v);
        let v2 = squared_hinge(v1, y, weight);
        let v3 = dense(v2);
        let v4 = tile(v3);
        let v5 = sum(v1, axis = -1);
        let v6 = square_sum(a, axis = [1]);
        let v7 = less_equal(0.3, v6);
        let v8 = max(b, axis = 0, keepdims = true);
        let v9 = negative(v8);
        loss mean(square(v0));
        loss mean(square(v4));
        loss mean(square(v5));
        loss mean(square(v7));
        loss mean(square(v9));
        output v9;
    }

    grown_15, [x, z, weight], [d], true {
        input x: csr[n, d];
        input z: dense[n, 3];
        label weight: dense[n];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, v);
        let v1 = dot(z, a);
        let v2 = huber(v1, z, weight);
        let v3 = subtract(v2, v0);
        let v4 = not_equal(v0, v3);
        loss mean(square(v4));
        output v1;
    }

    grown_16, [x, ones, z, ids, weight], [d, e], true {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        input z: dense[n, 3];
        input ids: dense<u32>[n];
        label weight: dense[n];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(x, w);
        let v2 = embedding(ids, v1);
        let v3 = logistic(v0, z, weight);
        let v4 = gamma(v3);
        let v5 = tile(v4);
        let v6 = embedding(ids, v1);
        let v7 = erf(v6);
        let v8 = greater(v7, v2);
        let v9 = dense(v5);
        let v10 = csr(t);
        let v11 = expand_dims(v1);
        loss mean(square(v8));
        loss mean(square(v9));
        loss mean(square(v10));
        loss mean(square(v11));
        output v11;
    }

    grown_17, [x, z], [d], true {
        input x: csr[n, d];
        input z: dense[n, 3];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = pairwise_interaction(x, v);
        let v1 = embedding_bag(x, v);
        let v2 = prod(v1, axis = -1, keepdims = true);
        let v3 = row_sparse(z);
        let v4 = hypot(v0, v0);
        let v5 = arctanh(v2);
        let v6 = zeros_like(v5);
        let v7 = sum(v1, axis = [0]);
        let v8 = rsqrt(v7);
        let v9 = divide(v2, v8);
        loss mean(square(v3));
        loss mean(square(v4));
        loss mean(square(v6));
        loss mean(square(v9));
        output v9;
    }

    grown_18, [x], [d], true {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, w);
        let v1 = dot(x, v);
        let v2 = softmax(v1, axis = 0);
        let v3 = flatten(v2);
        loss mean(square(v0));
        loss mean(square(v3));
        output v3;
    }

    grown_19, [x], [d], false {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, w);
        let v1 = dot(x, w);
        let v2 = less_equal(v1, 2.0);
        let v3 = transpose(v1);
        let v4 = norm(v1, axis = [0, 1], keepdims = true, exclude = true, ord = 2);
        let v5 = stop_gradient(a);
        let v6 = swap_axes(v0, first = -1);
        loss mean(square(v2));
        loss mean(square(v3));
        loss mean(square(v4));
        loss mean(square(v5));
        loss mean(square(v6));
        output v6;
    }

    grown_20, [x, ids], [d, e], true {
        input x: csr[n, d];
        input ids: dense<u32>[n];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = embedding_bag(x, v);
        let v1 = embedding(ids, t);
        let v2 = slice_like(v1, v1, axes = 1);
        let v3 = row_sparse(v1);
        let v4 = select(v0, v2, v0);
        loss mean(square(v3));
        loss mean(square(v4));
        output v4;
    }

    grown_21, [x, ones], [d], true {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = dot(x, w);
        let v2 = dot(v1, v1, transpose_lhs = true);
        let v3 = fully_connected(v1, v2);
        let v4 = arcsinh(v2);
        let v5 = less_equal(v4, v0);
        let v6 = dense(v3);
        let v7 = logsumexp(v5);
        let v8 = expand_dims(v2, axis = 2);
        loss mean(square(v6));
        loss mean(square(v7));
        loss mean(square(v8));
        output v8;
    }

    grown_22, [x, ones], [d], false {
        input x: csr[n, d];
        input ones: csr<unit>[n, d];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(ones, v);
        let v1 = pairwise_interaction(x, v);
        let v2 = arcsin(v0);
        let v3 = logical_xor(v2, -1.5);
        let v4 = sort(v1);
        let v5 = softsign(v4);
        let v6 = max(a, keepdims = true, exclude = true);
        loss mean(square(v3));
        loss mean(square(v5));
        loss mean(square(v6));
        output v6;
    }

    grown_23, [x], [d], true {
        input x: csr[n, d];
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };
        let v0 = dot(x, v);
        let v1 = embedding_bag(x, v);
        let v2 = nansum(v1, axis = [0, 1]);
        let v3 = slice_like(v2, v2);
        loss mean(square(v0));
        loss mean(square(v3));
        output v3;
    }
}
