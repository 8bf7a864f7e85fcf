//! Named dimensions, given when a model is made.

use nnz_arrays::escaped::Escaped;
use std::fmt;

/// Named extents: `dims! { d: 1000, k: 20 }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dims(Vec<(String, usize)>);

/// The given dimensions differ from those that the model's parameters name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DimsError {
    /// A parameter's shape names a dimension that was not given.
    #[error("model `{model}` needs the dimension `{name}`: write `dims! {{ {name}: … }}`")]
    Missing {
        /// The model.
        model: &'static str,
        /// The dimension.
        name: &'static str,
    },
    /// A dimension was given that no parameter names.
    #[error(
        "model `{model}` has no parameter with a dimension `{}` (it has: {known})",
        Escaped(name)
    )]
    Unknown {
        /// The model.
        model: &'static str,
        /// The dimension given.
        name: String,
        /// The dimensions that the model has.
        known: String,
    },
    /// A parameter would have more elements than can be addressed.
    #[error("parameter `{parameter}` of shape {shape} has more elements than can be addressed")]
    TooLarge {
        /// The parameter.
        parameter: &'static str,
        /// Its shape.
        shape: String,
    },
    /// The system has no memory for a parameter.
    #[error(
        "no memory for parameter `{parameter}` of shape {shape}, which takes {bytes} bytes: choose smaller dimensions: fewer features, or fewer bits of hashes"
    )]
    OutOfMemory {
        /// The parameter.
        parameter: &'static str,
        /// Its shape.
        shape: String,
        /// The bytes of it.
        bytes: usize,
    },
}

sparse_core::debug_of_errors!(DimsError);

impl Dims {
    /// No dimensions.
    pub fn new() -> Self {
        Dims::default()
    }

    /// These dimensions and one more.
    #[must_use]
    pub fn with(mut self, name: &str, extent: usize) -> Self {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(entry) => entry.1 = extent,
            None => self.0.push((name.to_owned(), extent)),
        }
        self
    }

    /// The extent with a name.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, extent)| *extent)
    }

    /// Names and extents in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, extent)| (name.as_str(), *extent))
    }

    /// Checks the names against those of a model's parameters.
    ///
    /// # Errors
    ///
    /// [`DimsError::Missing`] and [`DimsError::Unknown`].
    pub fn check(&self, model: &'static str, needed: &[&'static str]) -> Result<(), DimsError> {
        for &name in needed {
            if self.get(name).is_none() {
                return Err(DimsError::Missing { model, name });
            }
        }
        match self.iter().find(|(name, _)| !needed.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(DimsError::Unknown {
                model,
                name: name.to_owned(),
                known: if needed.is_empty() { "none".into() } else { needed.join(", ") },
            }),
        }
    }
}

/// `d = 1000, k = 20`.
impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, extent)) in self.iter().enumerate() {
            write!(f, "{}{} = {extent}", if i > 0 { ", " } else { "" }, Escaped(name))?;
        }
        Ok(())
    }
}

/// Named dimensions: `dims! { d: data.n_features(), k: 20 }`.
#[macro_export]
macro_rules! dims {
    ($($name:ident: $extent:expr),* $(,)?) => {
        $crate::model::Dims::new()$(.with(stringify!($name), $extent))*
    };
}
