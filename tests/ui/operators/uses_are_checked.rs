use nnz::prelude::*;

fn scaled(out: &mut Dense, x: DenseView<'_>, s: DenseView<'_>) {
    for (row, s) in s.values().iter().enumerate() {
        let (Some(out), Some(x)) = (out.row_mut(row), x.row(row)) else { continue };
        out.iter_mut().zip(x).for_each(|(out, x)| *out = s * x);
    }
}

fn cube(x: f32) -> f32 {
    x * x * x
}

// A declared operator is checked as those of the language are.
graph! {
    operator scaled(x, s) {
        rule dense dense -> dense = scaled;
        shape [n, k] [n] -> [n, k];
        gradient x = scaled(grad, s);
    }

    operator cube(x) { each = cube; }

    pub model Names {
        input x: dense[n, d];
        input s: dense[n];
        output spelt = sacled(x, s);
        output count = scaled(x);
        output attribute = cube(x, axis = 1);
    }

    pub model Shapes {
        input x: dense[n, d];
        input s: dense[d];
        output y = scaled(x, s);
        output z = scaled(s, s);
    }

    pub model Storage {
        input x: csr[n, d];
        input s: dense[n];
        output y = scaled(x, s);
        output z = cube(x);
    }

    pub model Gradients {
        input x: dense[n, d];
        label y: dense[n, d];
        param s: dense[n] = Ones;
        param w: dense[d] = Ones;
        loss squared_error(scaled(x, s), y);
        loss squared_error(cube(x * w), y);
    }
}

fn main() {}
