//! The models of the program that examples show as well are the same graphs.

use crate::command_line::{self, Files};
use crate::factorization_machine::FactorizationMachine;
use crate::logistic_regression::LogisticRegression;
use crate::multi_task::MultiTask;
use crate::poisson_regression::PoissonRegression;
use crate::softmax_regression::SoftmaxRegression;
use nnz::prelude::*;

/// Loads the file of a model, which is refused of another graph. (`linear`,
/// `matrix-factorization` and `wide-deep` differ: those of the examples begin elsewhere and are cut
/// to a range, or have layers of one size.)
#[test]
fn graphs_of_the_program_equal_those_of_the_examples() {
    fn is_the_same<M: Model<Element = f32>>(
        files: &Files,
        kind: &str,
        more: &[&str],
        make: fn(Dims, Seed) -> Result<M>,
        dims: Dims,
    ) {
        let (data, model) = (files.path("rows"), files.path("model"));
        let train = ["--model", kind, "--data", &data, "--epochs", "1", "--save", &model];
        command_line::run("train", &[&train[..], more].concat());
        let loaded = checkpoint::load(&mut make(dims, Seed(0)).unwrap(), &model);
        assert!(loaded.is_ok(), "{kind}: {loaded:?}");
    }
    let files = Files::new("examples");
    files.write("rows", "1 1:1 2:1\n0 2:1 4:1\n");
    let factors = ["--factors", "3"];
    let d = || dims! { d: 4 };
    is_the_same(&files, "logistic", &[], LogisticRegression::new, d());
    is_the_same(&files, "poisson", &[], PoissonRegression::new, d());
    is_the_same(&files, "softmax", &[], SoftmaxRegression::new, dims! { d: 4, k: 2 });
    is_the_same(&files, "fm", &factors, FactorizationMachine::new, dims! { d: 4, k: 3 });
    files.write("rows", "1,1,a\n0,0,b\n");
    let csv = ["--format", "csv", "--schema", "amount:label,event:label,z:categorical", "-b", "2"];
    is_the_same(&files, "multi-task", &[&csv[..], &factors].concat(), MultiTask::new, {
        dims! { d: 4, k: 3 }
    });
}
