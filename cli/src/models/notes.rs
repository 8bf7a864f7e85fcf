//! The notes of a model's file: how the data was read, so that `predict` reads as `train` did.

use crate::files::beside;
use crate::input::{Base, Format, Known, Reading, TwoLabels};
use crate::report::escaped;
use clap::ValueEnum;
use nnz::data::{DataError, Hashing, IdMap, NumberScale};
use nnz::prelude::*;
use std::path::Path;
use std::str::FromStr;

/// The notes of a model's file.
const FORMAT: &str = "format";
const SCHEMA: &str = "schema";
const INDEX_BASE: &str = "index_base";
const HASH_BITS: &str = "hash_bits";
const HASH_SEED: &str = "hash_seed";
const NGRAMS: &str = "ngrams";
const IDS: &str = "ids";
const HEADER: &str = "header";
const SEPARATOR: &str = "separator";
const SCALES: &str = "scales";
const CROSS: &str = "cross";
const NA: &str = "na";
const QUADRATIC: &str = "quadratic";
const CLASSES: &str = "classes";
pub(crate) const CLIP: &str = "clip_predictions";
const POSITIVE: &str = "positive";
const NEGATIVE: &str = "negative";
const LABEL_NAMES: &str = "label_names";
const LABEL_COLUMN: &str = "label_column";
const WEIGHT_COLUMN: &str = "weight_column";
const FIELD_NAMES: &str = "field_names";

/// What ids a model's rows stand for, in a few words: how many, and a hash of all in their order.
fn note_of_ids((users, items): &(IdMap, IdMap)) -> Result<String, DataError> {
    let mut hash = 0;
    for id in users.ids().chain([""]).chain(items.ids()) {
        hash = Hashing::new(32)?.seed(hash).column(IDS, id.as_bytes());
    }
    Ok(format!("{} users, {} items, {hash:08x}", users.len(), items.len()))
}

/// Refuses ids that are not those of the model: its rows would be taken for others, whose scores
/// are numbers like any.
pub(crate) fn check_ids(
    model: &Path,
    notes: &[(String, String)],
    ids: &(IdMap, IdMap),
) -> Result<(), String> {
    let found = note_of_ids(ids).map_err(|error| error.to_string())?;
    match notes.iter().find(|(name, _)| name == IDS) {
        Some((_, noted)) if *noted != found => Err(format!(
            "`{}` and `{}` hold other ids ({found}) than those that {} was saved with ({noted}): put the files there that were written with it, or train again",
            beside(model, "users").display(),
            beside(model, "items").display(),
            model.display(),
        )),
        _ => Ok(()),
    }
}

/// The label of each class, as noted.
pub(crate) fn classes(notes: &[(String, String)]) -> Result<Option<Vec<f64>>, String> {
    let Some((_, note)) = notes.iter().find(|(name, _)| name == CLASSES) else { return Ok(None) };
    let labels: Result<_, _> = note.split(", ").map(str::parse).collect();
    labels.map(Some).map_err(|_| unreadable(CLASSES, note))
}

/// The words that are labels, as noted; none where labels are numbers.
pub(crate) fn label_names(notes: &[(String, String)]) -> Result<Vec<String>, String> {
    names(LABEL_NAMES, notes)
}

/// The names that one note has; none where there is no such note.
fn names(noted: &str, notes: &[(String, String)]) -> Result<Vec<String>, String> {
    let Some((_, note)) = notes.iter().find(|(name, _)| name == noted) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(note).map_err(|_| unreadable(noted, note))
}

/// The note of the labels of two classes that are read as they are.
pub(crate) fn note_of_read_labels(labels: &[f64]) -> (&'static str, String) {
    (CLASSES, labels.iter().map(f64::to_string).collect::<Vec<_>>().join(", "))
}

/// What predictions are cut to, as noted.
pub(crate) fn clip(notes: &[(String, String)]) -> Result<Option<(f64, f64)>, String> {
    let Some((_, note)) = notes.iter().find(|(name, _)| name == CLIP) else { return Ok(None) };
    let ends = note
        .split_once(',')
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    // `f64::clamp` panics on a range without numbers, which a file that was changed may have.
    let ends = ends.filter(|(low, high): &(f64, f64)| low <= high);
    ends.map(Some).ok_or_else(|| unreadable(CLIP, note))
}

/// The base of indices, as noted: the number of the first feature.
pub(crate) fn first_feature(notes: &[(String, String)]) -> usize {
    let is_one = |(name, note): &(String, String)| name == INDEX_BASE && note == "one";
    usize::from(notes.iter().any(is_one))
}

/// The labels of two classes, as noted.
pub(crate) fn two_labels(notes: &[(String, String)]) -> Result<Option<TwoLabels>, String> {
    let number = |name: &str| {
        let note = notes.iter().find(|(known, _)| known == name);
        note.map(|(_, note)| note.parse().map_err(|_| unreadable(name, note))).transpose()
    };
    let (positive, negative) = (number(POSITIVE)?, number(NEGATIVE)?);
    Ok(positive.map(|positive| TwoLabels { positive, negative }))
}

/// The notes of the labels of two classes.
pub(crate) fn notes_of_two_labels(
    labels: Option<TwoLabels>,
) -> impl Iterator<Item = (&'static str, String)> {
    let positive = labels.map(|labels| (POSITIVE, labels.positive.to_string()));
    let negative = labels.and_then(|labels| Some((NEGATIVE, labels.negative?.to_string())));
    positive.into_iter().chain(negative)
}

/// The note of what predictions are cut to.
pub(crate) fn note_of_clip((low, high): (f64, f64)) -> (&'static str, String) {
    (CLIP, format!("{low},{high}"))
}

/// `age:40.5:12.25` of each column: its mean and its deviation.
fn note_of_scales(scales: &[NumberScale]) -> String {
    let note = |NumberScale { column, mean, deviation }: &NumberScale| {
        format!("{column}:{mean}:{deviation}")
    };
    scales.iter().map(note).collect::<Vec<_>>().join(",")
}

fn scales_of(note: &str) -> Option<Vec<NumberScale>> {
    let scale = |note: &str| {
        let mut parts = note.splitn(3, ':');
        let column = parts.next()?.to_owned();
        let (mean, deviation) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(NumberScale { column, mean, deviation })
    };
    note.split(',').map(scale).collect()
}

impl Reading {
    /// What must be the same where a model is used, for its file.
    pub(crate) fn notes(&self, path: &Path, known: &Known) -> Vec<(&'static str, String)> {
        let format = self.format_of(path);
        let mut notes = Vec::new();
        if self.is_hashed(path) {
            notes.push((HASH_BITS, self.hash_bits().to_string()));
            notes.push((HASH_SEED, self.hash_seed().to_string()));
        }
        if format == Format::Words {
            notes.push((NGRAMS, self.ngrams().to_string()));
        }
        notes.push((FORMAT, format.name()));
        let schema = self.schema.clone().filter(|_| format == Format::Csv);
        notes.extend(schema.map(|schema| (SCHEMA, schema)));
        if format.is_sparse_columns() {
            let columns = [(LABEL_COLUMN, &self.label), (WEIGHT_COLUMN, &self.weight)];
            let named = columns.into_iter().filter_map(|(note, name)| Some((note, name.clone()?)));
            notes.extend(named);
        }
        let separator = self.separator.filter(|_| format == Format::Csv);
        notes.extend(separator.map(|separator| (SEPARATOR, separator.to_string())));
        for (name, crosses) in [(CROSS, &self.cross), (QUADRATIC, &self.quadratic), (NA, &self.na)]
        {
            if !crosses.is_empty() {
                notes.push((name, crosses.join(";")));
            }
        }
        if self.has_header() && format == Format::Csv {
            notes.push((HEADER, true.to_string()));
        }
        if !self.scales.is_empty() {
            notes.push((SCALES, note_of_scales(&self.scales)));
        }
        for (name, names) in [(LABEL_NAMES, &self.label_names), (FIELD_NAMES, &self.field_names)] {
            if !names.is_empty() {
                // Text is nothing that JSON cannot write.
                notes.push((name, serde_json::to_string(names).unwrap_or_default()));
            }
        }
        if let Some(classes) = &known.classes {
            let labels: Vec<String> = classes.labels().iter().map(f64::to_string).collect();
            notes.push((CLASSES, labels.join(", ")));
        }
        let ids = known.ids.as_ref().and_then(|ids| note_of_ids(ids).ok());
        notes.extend(ids.map(|ids| (IDS, ids)));
        match known.index_base {
            Some(IndexBase::Zero) => notes.push((INDEX_BASE, "zero".to_owned())),
            Some(IndexBase::One) => notes.push((INDEX_BASE, "one".to_owned())),
            Some(_) | None => {}
        }
        notes
    }

    /// Reads as was [noted](Self::notes), unless the command line says otherwise: then it is wrong.
    pub(crate) fn adopt(&mut self, notes: &[(String, String)]) -> Result<(), String> {
        for (name, said) in [(CROSS, &self.cross), (QUADRATIC, &self.quadratic), (NA, &self.na)] {
            if !said.is_empty() && !notes.iter().any(|(known, _)| known == name) {
                return Err(format!("the model was trained without `--{name}`: leave it out"));
            }
        }
        for (name, note) in notes {
            match &name[..] {
                FORMAT => {
                    self.is_format_noted = self.format.is_none();
                    adopt(&mut self.format, name, note)?;
                }
                SCHEMA => adopt(&mut self.schema, name, note)?,
                LABEL_COLUMN => adopt(&mut self.label, name, note)?,
                WEIGHT_COLUMN => adopt(&mut self.weight, name, note)?,
                SEPARATOR => adopt(&mut self.separator, name, note)?,
                HASH_BITS => adopt(&mut self.hash_bits, name, note)?,
                HASH_SEED => adopt(&mut self.hash_seed, name, note)?,
                NGRAMS => adopt(&mut self.ngrams, name, note)?,
                CROSS => adopt_all(&mut self.cross, name, note)?,
                QUADRATIC => adopt_all(&mut self.quadratic, name, note)?,
                LABEL_NAMES => self.label_names = label_names(notes)?,
                FIELD_NAMES => self.field_names = names(FIELD_NAMES, notes)?,
                NA => adopt_all(&mut self.na, name, note)?,
                HEADER => self.noted_header = note == "true",
                SCALES if self.no_scaling || self.scaling.is_some() => {
                    let flag = if self.no_scaling { "--no-scaling" } else { "--scaling" };
                    return Err(format!(
                        "{flag}: the model's file says how its numbers are scaled: leave it out"
                    ));
                }
                SCALES => self.scales = scales_of(note).ok_or_else(|| unreadable(name, note))?,
                INDEX_BASE => {
                    let base = Base::from_str(note, false)?;
                    if self.index_base != Base::Detect && self.index_base != base {
                        return Err(other_than_trained(name, note));
                    }
                    self.index_base = base;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Takes a note where nothing is said.
fn adopt<T: FromStr + PartialEq>(
    said: &mut Option<T>,
    name: &str,
    note: &str,
) -> Result<(), String> {
    let noted = note.parse().map_err(|_| unreadable(name, note))?;
    match said.replace(noted) {
        Some(other) if said.as_ref() != Some(&other) => Err(other_than_trained(name, note)),
        _ => Ok(()),
    }
}

/// Takes a note of several words where nothing is said.
fn adopt_all(said: &mut Vec<String>, name: &str, note: &str) -> Result<(), String> {
    let noted: Vec<String> = note.split(';').map(str::to_owned).collect();
    if !said.is_empty() && *said != noted {
        return Err(other_than_trained(name, note));
    }
    *said = noted;
    Ok(())
}

fn unreadable(name: &str, note: &str) -> String {
    let note = escaped(note);
    format!("the note `{name}` of the model is `{note}`, which `nnz train` does not write")
}

fn other_than_trained(name: &str, note: &str) -> String {
    let flag = name.replace('_', "-");
    format!("the model was trained with `--{flag} {note}`: say the same, or nothing")
}
