//! Classes: labels in files to ids `0..K` and back.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The classes of a label: its distinct values, ascending. The position of a value is its class id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Classes(Vec<f64>);

impl Classes {
    /// The classes that occur among some labels, none of them `nan`. O(n log n) for n labels.
    ///
    /// ```
    /// use nnz::data::Classes;
    ///
    /// assert_eq!(Classes::of([2.0, -1.0, 2.0]).labels(), [-1.0, 2.0]);
    /// ```
    pub fn of(labels: impl IntoIterator<Item = f64>) -> Self {
        // `+ 0.0` makes one class of -0 and 0.
        let mut classes: Vec<f64> = labels.into_iter().map(|label| label + 0.0).collect();
        classes.sort_unstable_by(f64::total_cmp);
        classes.dedup();
        classes.shrink_to_fit();
        Classes(classes)
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no class: the data had no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of a label. O(log K).
    pub fn id(&self, label: f64) -> Option<u32> {
        let position = self.0.binary_search_by(|known| known.total_cmp(&(label + 0.0)));
        u32::try_from(position.ok()?).ok()
    }

    /// The label with an id.
    pub fn label(&self, id: u32) -> Option<f64> {
        self.0.get(id as usize).copied()
    }

    /// All labels, ascending; their positions are their ids.
    pub fn labels(&self) -> &[f64] {
        &self.0
    }
}

/// `{-1, 1}`; for many classes the first few.
impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        f.write_str("{")?;
        for (i, label) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{label}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.0.len() > SHOWN { ", …}" } else { "}" })
    }
}
