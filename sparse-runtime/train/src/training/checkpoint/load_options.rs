//! The differences between a file and a model that loading allows.

/// The differences between file and model that are allowed. Shape, storage type and element type of
/// common parameters must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The file may lack parameters of the model; they keep their values.
    pub allow_missing: bool,
    /// The file may have parameters that the model lacks.
    pub allow_unexpected: bool,
}

impl LoadOptions {
    /// Loads the parameters that model and file have in common.
    pub const WARM_START: LoadOptions = LoadOptions { allow_missing: true, allow_unexpected: true };

    /// A graph with other parameters is another graph.
    pub(super) fn allows_other_graphs(self) -> bool {
        self.allow_missing || self.allow_unexpected
    }
}
