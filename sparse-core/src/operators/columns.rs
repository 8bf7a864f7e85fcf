//! Columns of the operator table: facts about an operator's operands and its result.

/// The sparsity pattern of a csr result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsrPattern {
    /// Unknown: it may depend on values.
    Unknown,
    /// That of this operand.
    Operand(&'static str),
    /// It follows from the patterns of the csr operands. Gradients with respect to stored elements,
    /// and to dense operands, read the incoming gradient at these entries only.
    OfOperands,
    /// Every row stores the columns that occur in a csr operand.
    EveryRow,
    /// Each row stores the column that its id in this operand names.
    Ids(&'static str),
}

/// The names of table rows: columns of a csr, or ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNames {
    /// The columns that this csr operand stores.
    Columns(&'static str),
    /// The ids in this operand.
    Ids(&'static str),
}

impl RowNames {
    /// The operand that holds the names.
    pub const fn operand(self) -> &'static str {
        match self {
            RowNames::Columns(operand) | RowNames::Ids(operand) => operand,
        }
    }
}

/// The use of named table rows: how they are pooled where they are read, or what is added to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowUse {
    /// The rows are the result, at their places in an array of the same shape.
    AsTheyAre,
    /// For each sample, each row is multiplied by the value of the entry that names it.
    Product,
    /// The rows of each sample are summed, as the operator's attributes say.
    Bags,
    /// Each row is taken as often as an id names it.
    Each,
    /// The products of all pairs of them are summed, weighted by the values of the entries that
    /// name them.
    Pairwise,
    /// Something else.
    Otherwise,
}

/// How an operator reads the table rows of an operand that may be row_sparse. The first entry for
/// the operand whose condition holds applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsRead {
    /// The operand.
    pub table: &'static str,
    /// The names of the rows that are read; `None` for all rows.
    pub by: Option<RowNames>,
    /// The condition, as in [`Gradient::when`](super::Gradient::when).
    pub when: Option<&'static str>,
    /// The use of the rows.
    pub what: RowUse,
}

/// A link function, which makes predictions of scores. Metrics see the score: in the model's
/// element type, different scores may have one prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `1 / (1 + exp(-s))`: the probability of the positive class.
    Sigmoid,
    /// `exp(s)` over the sum of `exp` of a row's scores: the probabilities of classes.
    Softmax,
    /// `exp(s)`: a count, or a probability by its logarithm.
    Exp,
}

/// The operands of an operator that are weights: factors of a product, and tables of look-ups. An
/// operand that is added or multiplied by broadcasting (a bias, a scale) is no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// No operand is.
    None,
    /// The operands of these names are.
    Operands(&'static [&'static str]),
    /// An operand that is not a csr is, where the other one is a csr.
    BesideCsr,
    /// The row_sparse operands are: an operator that users declare reads their rows.
    Tables,
}

/// Ids in the operand `ids` are positions along `axis` (negative from the end) of the operand `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdsBelow {
    /// The operand that holds ids.
    pub ids: &'static str,
    /// The operand that they index, or the attribute that is the extent.
    pub of: &'static str,
    /// The axis of that operand.
    pub axis: i64,
}

/// A matrix product that an operator is, of its first two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixProduct {
    /// None.
    None,
    /// Of two matrices, each read transposed where its flag says so.
    ByFlags,
    /// Of a matrix and the transposed second operand, plus a bias. The operator of this name
    /// multiplies by the second operand as it is.
    WithTransposed(&'static str),
    /// Of all elements of a vector with all of another.
    Outer,
}

/// A product with a number that an operator is, and how it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// None.
    None,
    /// Of its operand, with a number of its own.
    Always,
    /// Of the left operand, where the right one is a number.
    ByRight,
    /// Of an operand, where the other one is a number.
    ByEither,
}

/// How an operator places the elements of its operands, where it computes nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In no way that has a name here.
    Other,
    /// One operand after the other, along `axis`.
    Joined,
    /// The first elements along axes, or the last with `from_end`, as many as `like` has.
    PartLike,
    /// Each repeated to the shape of `like`; with `mean` divided by the number of repetitions.
    RepeatedLike,
    /// With the two axes of a matrix exchanged.
    Transposed,
}

/// Where the runtime has the kernels of an operator, below its module `kernels`. On every device
/// they are called `<operator>::<device>::<rule>`; modules that are not written are made from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelModule {
    /// In a module of the operator's name.
    Own,
    /// In a module of several operators, as `<operator>_<rule>`: `casts::cpu::csr_dense`. Where the
    /// operator's name begins with that of the module this is left out, so that a gradient stands
    /// beside what it is of: `take::cpu::gradient_dense_ids_like`.
    Shared(&'static str),
    /// In a module of several operators that move elements in the same way, to different places.
    ///
    /// The function `<module>::<operator>` makes a plan of the operands' shapes and the attributes;
    /// `<module>::<device>::<kernel>_<rule>` carries it out, and is given the operands that are
    /// arrays.
    Planned {
        /// The module.
        module: &'static str,
        /// What the kernels' names begin with.
        kernel: &'static str,
    },
}
