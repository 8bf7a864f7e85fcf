//! Agreement: workers compare their settings before they train.

use super::communicator::{Communicator, CommunicatorError, Parcels};
use super::error::StoreError;
use super::message::{Call, Message, begin};
use std::time::Instant;

/// Settings by name, each value as text.
type Settings = Vec<(String, String)>;

/// Compares the settings of all workers, by name and as text. Collective, and before any other
/// exchange. Every worker returns the same: the first setting, in the order of worker 0, in which
/// the first worker that differs does so.
///
/// ```
/// use nnz::store::{Threads, agree};
///
/// let ends = Threads::group(2)?;
/// std::thread::scope(|scope| {
///     for (mut end, rate) in ends.into_iter().zip(["0.05", "0.15"]) {
///         scope.spawn(move || {
///             let settings = [("learning_rate".to_owned(), rate.to_owned())];
///             let error = agree(&mut end, &settings).unwrap_err().to_string();
///             let expected = "worker 1 has `learning_rate` = 0.15, worker 0 has 0.05";
///             assert!(error.starts_with(expected));
///         });
///     }
/// });
/// # Ok::<(), nnz::store::CommunicatorError>(())
/// ```
///
/// # Errors
///
/// [`StoreError::Disagreement`]; [`StoreError::OutOfStep`] for a worker that made another call;
/// those of the communicator.
pub fn agree<C: Communicator>(
    communicator: &mut C,
    settings: &[(String, String)],
) -> Result<(), StoreError> {
    let (here, size) = (communicator.rank(), communicator.size());
    CommunicatorError::check_size(size)?;
    let problem = "its settings cannot be written";
    let text =
        serde_json::to_vec(settings).map_err(|_| StoreError::Message { rank: here, problem })?;
    let (mut outgoing, mut incoming) = (Parcels::new(size), Parcels::new(size));
    for parcel in outgoing.iter_mut() {
        begin(parcel, Call::Agree, 0);
        parcel.extend_from_slice(&text);
    }
    let began = Instant::now();
    communicator.exchange(&mut outgoing, &mut incoming).map_err(|error| StoreError::Exchange {
        call: Call::Agree.name(),
        n_steps: 0,
        waited: began.elapsed(),
        error,
    })?;
    let read = |rank| {
        let message = Message::open(incoming.of(rank), rank, here, Call::Agree, 0)?;
        serde_json::from_slice::<Settings>(message.rest())
            .map_err(|_| message.problem("its settings cannot be read"))
    };
    let expected = read(0)?;
    for rank in 1..size {
        if let Some([name, found, expected]) = first_difference(&read(rank)?, &expected) {
            return Err(StoreError::Disagreement { rank, name, found, expected });
        }
    }
    Ok(())
}

/// The name of the first setting that differs, and the two values.
fn first_difference(found: &Settings, expected: &Settings) -> Option<[String; 3]> {
    let value = |settings: &Settings, name: &str| {
        let known = settings.iter().find(|(known, _)| known == name);
        known.map_or("none".to_owned(), |(_, value)| value.clone())
    };
    let names = expected.iter().chain(found).map(|(name, _)| name);
    let mut rows = names.map(|name| [name.clone(), value(found, name), value(expected, name)]);
    rows.find(|[_, found, expected]| found != expected)
}
