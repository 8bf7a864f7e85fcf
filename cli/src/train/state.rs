//! The state of an update rule beside a saved model, with which training goes on.

use super::arguments::Arguments;
use crate::Failure;
use crate::files::beside;
use crate::models::saved::SavedModel;
use crate::report::note;
use nnz::core::update_rules::UpdateRule;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::path::{Path, PathBuf};

/// The ending of its file.
const ENDING: &str = "state";

/// The file of the state that belongs to a model, if it is there.
pub(super) fn of(saved: &SavedModel) -> Option<PathBuf> {
    Some(beside(&saved.path, ENDING)).filter(|path| path.is_file())
}

/// The file to save the state in, if it is to be saved.
pub(super) fn to_save(arguments: &Arguments) -> Option<PathBuf> {
    let model = arguments.save.as_deref().filter(|_| arguments.save_state)?;
    Some(beside(model, ENDING))
}

/// Loads a state for a model that was loaded, and refuses that of another model.
pub(super) fn load<M: Model<Element = f32>, R: UpdateRule>(
    model: &mut M,
    updater: &mut Updater<R, f32>,
    path: &Path,
) -> Result<(), Failure> {
    let before = hash(model);
    let way_out = || format!("remove `{}` to begin with no state", path.display());
    if let Err(error) = checkpoint::load_run(model, updater, path) {
        return Err(format!("{error}; {}", way_out()).into());
    }
    if hash(model) != before {
        let path = path.display();
        return Err(format!(
            "`{path}` is the state of other weights than the model has: {}",
            way_out()
        )
        .into());
    }
    note(format_args!("going on with the state in {}", path.display()));
    Ok(())
}

/// A hash of all weights: FNV-1a over their bits.
fn hash<M: Model<Element = f32>>(model: &M) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for parameter in model.parameters() {
        for weight in parameter.values().iter() {
            hash = (hash ^ u64::from(weight.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
