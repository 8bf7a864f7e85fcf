//! Agreement: workers compare their settings before they train, and get one report after.

use super::communicator::{Communicator, CommunicatorError, Parcels};
use super::error::StoreError;
use super::message::{Call, Message, begin};
use serde::Serialize;
use serde::de::DeserializeOwned;
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
    let incoming = exchange_texts(communicator, Call::Agree, &text)?;
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

/// The report of worker 0, which all get. Collective, after the last step: only worker 0 has `own`.
pub(crate) fn share<C: Communicator, A: Serialize + DeserializeOwned>(
    communicator: &mut C,
    own: Option<&A>,
) -> Result<A, StoreError> {
    let here = communicator.rank();
    let problem = "its report cannot be written";
    let text = own.map(serde_json::to_vec).transpose();
    let text = text.map_err(|_| StoreError::Message { rank: here, problem })?;
    let incoming = exchange_texts(communicator, Call::Share, &text.unwrap_or_default())?;
    let message = Message::open(incoming.of(0), 0, here, Call::Share, 0)?;
    serde_json::from_slice(message.rest()).map_err(|_| message.problem("its report cannot be read"))
}

/// Gives a text to all workers, and gets those of all.
fn exchange_texts<C: Communicator>(
    communicator: &mut C,
    call: Call,
    text: &[u8],
) -> Result<Parcels, StoreError> {
    let size = communicator.size();
    let (mut outgoing, mut incoming) = (Parcels::new(size), Parcels::new(size));
    for parcel in outgoing.iter_mut() {
        begin(parcel, call, 0);
        parcel.extend_from_slice(text);
    }
    let began = Instant::now();
    communicator.exchange(&mut outgoing, &mut incoming).map_err(|error| StoreError::Exchange {
        call: call.name(),
        n_steps: 0,
        waited: began.elapsed(),
        error,
    })?;
    Ok(incoming)
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
