use nnz::prelude::*;

const USER: usize = 2;
const ITEM: usize = 3;

graph! {
    pub model SumOfConstants {
        const USER;
        const ITEM;
        const BOTH = USER + ITEM + 1;
        input a: dense[n, USER];
        input b: dense[n, ITEM];
        input c: dense[n, BOTH];
        output same = concat(a, b, axis = 1) + c;
        output wrong = concat(a, c, axis = 1) + concat(a, b, b, axis = 1);
    }
}

fn main() {}
