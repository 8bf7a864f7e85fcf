//! The settings on which the workers of a run agree before its first step.

use nnz_arrays::bytes::Checksum;
use nnz_data::Position;
use nnz_step::model::Model;
use sparse_core::element::Stored;

/// The settings of a run by name, those that say most first: the program, its rule (the settings of
/// the updater), its trainer and data, its length, and the values at which it begins. O(values).
pub(super) fn settings<M: Model>(
    model: &M,
    of_updater: &[(String, String)],
    of_trainer: Vec<(String, String)>,
    epochs: u64,
    start: Position,
) -> Vec<(String, String)> {
    let named = |name: &str, value: String| (name.to_owned(), value);
    let mut settings = vec![
        named("version of nnz", env!("CARGO_PKG_VERSION").to_owned()),
        named("model", M::NAME.to_owned()),
        named("fingerprint of the graph", format!("{:016x}", M::FINGERPRINT)),
        named("element type", <M::Element as Stored>::TYPE.name().to_owned()),
    ];
    let dims = model.dims().iter();
    settings.extend(dims.map(|(name, extent)| (format!("dimension {name}"), extent.to_string())));
    settings.extend_from_slice(of_updater);
    settings.push(named("epochs", epochs.to_string()));
    settings.extend(of_trainer);
    settings.push(named("first batch", format!("{} of epoch {}", start.batch, start.epoch)));
    settings.extend(model.parameters().iter().map(|parameter| {
        let checksum = format!("checksum {:016x}", Checksum::of(parameter.values()));
        (format!("initial values of {}", parameter.name), checksum)
    }));
    settings
}
