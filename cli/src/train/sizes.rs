//! The sizes of models with layers, and of those with fields.

use super::arguments::name_of;
use crate::models::{ModelKind, Sizes};
use clap::Args;
use clap::builder::RangedU64ValueParser;

/// The sizes of layers and tables that some models have.
#[derive(Clone, Debug, Args)]
pub(crate) struct LayerSizes {
    /// wide-deep: the sizes of one to three layers, from the first on: --hidden 64,32; 32 if not
    /// said. Two and three layers are trained by sgd, adagrad, ftrl and adam.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    hidden: Vec<usize>,
    /// wide-deep: the columns of the table of embeddings; 8 if not said.
    #[arg(long, value_name = "COLUMNS", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    embedding: Option<usize>,
    /// field-aware-machine: the number of fields, if not that of the data.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    fields: Option<usize>,
}

/// The layers of a model of which nothing is said.
const HIDDEN: [usize; 1] = [32];

/// The columns of a table of embeddings of which nothing is said.
const EMBEDDING: usize = 8;

impl LayerSizes {
    /// Refuses sizes that a model does not have.
    pub(super) fn check(&self, model: ModelKind) -> Result<(), String> {
        for (flag, is_given, has_it, of) in [
            ("--hidden", !self.hidden.is_empty(), model.has_layers(), ModelKind::WideDeep),
            ("--embedding", self.embedding.is_some(), model.has_layers(), ModelKind::WideDeep),
            ("--fields", self.fields.is_some(), model.reads_fields(), ModelKind::FieldAwareMachine),
        ] {
            if is_given && !has_it {
                return Err(format!(
                    "{flag} is for --model {}, but the model is {}: leave {flag} out, or choose another --model",
                    name_of(&of),
                    name_of(&model)
                ));
            }
        }
        Ok(())
    }

    /// With the columns of other tables.
    pub(super) fn of(&self, factors: usize) -> Sizes<'_> {
        Sizes {
            factors,
            embedding: self.embedding.unwrap_or(EMBEDDING),
            hidden: self.hidden(),
            fields: self.fields,
        }
    }

    fn hidden(&self) -> &[usize] {
        if self.hidden.is_empty() { &HIDDEN } else { &self.hidden }
    }

    /// The variant of a model with as many layers as there are sizes.
    pub(super) fn kind(&self, kind: ModelKind) -> Result<ModelKind, String> {
        if !kind.has_layers() {
            return Ok(kind);
        }
        let n_layers = self.hidden().len();
        kind.with_layers(n_layers).ok_or_else(|| {
            format!("--hidden: {n_layers} layers, of which a model has one to three: say fewer")
        })
    }
}
