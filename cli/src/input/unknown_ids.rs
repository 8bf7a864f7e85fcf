//! Users and items that a model of ratings does not know, which are scored by what is known.

use super::{Known, Reading};
use crate::report::note;
use nnz::data::{AnyDataset, ColumnValues};

/// How many samples have an unknown user, and how many an unknown item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UnknownIds {
    users: usize,
    items: usize,
    /// Whether samples were streamed, which are not counted.
    is_stream: bool,
}

/// The unknown users and items of some data. O(samples).
pub(crate) fn of_data(data: &AnyDataset, reading: &Reading, known: &Known) -> UnknownIds {
    let Some((users, items)) = known.ids.as_ref().filter(|_| reading.scores_unknown(known)) else {
        return UnknownIds::default();
    };
    let AnyDataset::Memory(data) = data else {
        return UnknownIds { is_stream: true, ..UnknownIds::default() };
    };
    let count = |column: &str, n_known: usize| match data.column(column).map(|c| c.values()) {
        Some(ColumnValues::Ids(ids)) => ids.view().iter().filter(|id| *id >= n_known).count(),
        _ => 0,
    };
    UnknownIds {
        users: count("user", users.len()),
        items: count("item", items.len()),
        is_stream: false,
    }
}

impl UnknownIds {
    /// Adds those of more samples.
    pub(crate) fn add(&mut self, more: UnknownIds) {
        self.users += more.users;
        self.items += more.items;
        self.is_stream |= more.is_stream;
    }

    /// Says on the error stream how many there are, if there are some.
    pub(crate) fn tell(self) {
        let how = "scored by the mean and the biases that are known; --unknown refuse refuses them";
        match self {
            UnknownIds { is_stream: true, .. } => {
                note(format_args!("users and items that the model does not know are {how}"));
            }
            UnknownIds { users: 0, items: 0, .. } => {}
            UnknownIds { users, items, .. } => {
                note(format_args!(
                    "unknown to the model: the users of {users} samples, the items of {items}: {how}"
                ));
            }
        }
    }
}
