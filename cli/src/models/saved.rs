//! A model that was saved, and what its file says about data.

use super::notes::{check_ids, classes, clip, label_names, two_labels};
use super::output_change::ClassNames;
use super::{ModelKind, ModelVisitor, Task, fields};
use crate::Failure;
use crate::files::beside;
use crate::input::{DataFiles, Known, Reading, TwoLabels};
use crate::report::escaped;
use crate::train::weights::with_any_weights;
use nnz::data::{AnyDataset, IdMap};
use nnz::prelude::*;
use nnz::training::checkpoint::CheckpointMetadata;
use std::path::{Path, PathBuf};

/// A model's file, read but for its parameters.
pub(crate) struct SavedModel {
    pub(crate) path: PathBuf,
    pub(crate) metadata: CheckpointMetadata,
    pub(crate) kind: ModelKind,
    /// What the file says about data.
    pub(crate) known: Known,
    /// The labels of the classes.
    pub(crate) labels: Option<Vec<f64>>,
    /// The words that are labels, where they are not numbers.
    pub(crate) label_names: Vec<String>,
    /// The labels of two classes, if they are not read as they are.
    pub(crate) two_labels: Option<TwoLabels>,
    /// What predictions are cut to.
    pub(crate) clip: Option<(f64, f64)>,
}

impl SavedModel {
    /// Reads what a file says.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let (metadata, own_ids) = checkpoint::read_ids(path)?;
        let kind = ModelKind::of_name(&metadata.model).ok_or_else(|| {
            format!("{}: `{}` is not a model of `train`", path.display(), escaped(&metadata.model))
        })?;
        let own = |name: &str| {
            let found = own_ids.iter().find(|(known, _)| known == name);
            found.map(|(_, ids)| ids.clone())
        };
        // Of files of before they are in two files beside the model's.
        let ids = |ending| IdMap::read(beside(path, ending));
        let ids = match (kind.base(), own("user"), own("item")) {
            (ModelKind::MatrixFactorization, Some(users), Some(items)) => Some((users, items)),
            (ModelKind::MatrixFactorization, ..) => Some((ids("users")?, ids("items")?)),
            _ => None,
        };
        if let Some(ids) = &ids {
            check_ids(path, &metadata.notes, ids)?;
        }
        let known = Known {
            n_features: metadata.dims.get("d"),
            ids,
            is_of_model: true,
            is_scored: true,
            ..Known::default()
        };
        let (labels, clip) = (classes(&metadata.notes)?, clip(&metadata.notes)?);
        let two_labels = two_labels(&metadata.notes)?;
        let label_names = label_names(&metadata.notes)?;
        let path = path.to_owned();
        Ok(SavedModel { path, metadata, kind, known, labels, label_names, two_labels, clip })
    }

    /// How data for this model are read: as the command line says, and as the file does.
    pub(crate) fn reading(&self, reading: &Reading, data: &DataFiles) -> Result<Reading, Failure> {
        let mut reading = reading.clone();
        reading.reads_fields = self.kind.reads_fields();
        reading.adopt(&self.metadata.notes)?;
        reading.check(data, None)?;
        Ok(reading)
    }

    /// Data with labels, these as the model reads them.
    pub(crate) fn open_labelled(
        &self,
        reading: &Reading,
        data: &DataFiles,
    ) -> Result<AnyDataset, Failure> {
        let files = data;
        let data = reading.open(files, &self.known_of_labelled(), false)?;
        self.check_fields(&data, files)?;
        let data = with_any_weights(self.kind, data)?;
        match self.two_labels {
            Some(labels) => labels.apply(data),
            None => Ok(data),
        }
    }

    /// Refuses data with fields that the model does not have.
    pub(crate) fn check_fields(&self, data: &AnyDataset, files: &DataFiles) -> Result<(), String> {
        fields::check(data, self.metadata.dims.get("fields"), &files.to_string())
    }

    /// What is known of data with labels.
    pub(crate) fn known_of_labelled(&self) -> Known {
        let labels = self.labels.iter().filter(|_| self.kind.task() == Task::Classes);
        let classes = labels.map(|labels| nnz::data::Classes::of(labels.iter().copied())).next();
        Known { classes, ..self.known.clone() }
    }

    /// The model; `make` is its `new`.
    pub(crate) fn load<M: Model<Element = f32>>(
        &self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<M> {
        self.metadata.check_dims::<M>()?;
        let mut model = make(self.metadata.dims.clone(), Seed(0))?;
        checkpoint::load(&mut model, &self.path)?;
        Ok(model)
    }

    /// The model as it scores data: a model of ratings has one more user and one more item, of
    /// zeros, for those that it does not know, whose ratings are then the mean and the biases that
    /// are known.
    pub(crate) fn load_to_score<M: Model<Element = f32>>(
        &self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<M> {
        let known = self.load(make)?;
        let extent = |name| self.metadata.dims.get(name);
        let (Some(users), Some(items), Some(k)) = (extent("users"), extent("items"), extent("k"))
        else {
            return Ok(known);
        };
        let mut model = make(dims! { users: users + 1, items: items + 1, k: k }, Seed(0))?;
        for (parameter, from) in model.parameters_mut().into_iter().zip(known.parameters()) {
            let values = parameter.table.values_mut();
            let (first, more) = values.split_at_mut(from.values().len().min(values.len()));
            first.copy_from_slice(&from.values()[..first.len()]);
            more.fill(0.0);
        }
        Ok(model)
    }

    /// The labels of the classes, and from which number on the second of two is predicted:
    /// `threshold` of probabilities, 0 of scores.
    pub(crate) fn class_names(&self, threshold: f64) -> Result<ClassNames, Failure> {
        let name = |label: f64| match self.label_names.get(label as usize) {
            Some(name) if label >= 0.0 && label.fract() == 0.0 => name.clone(),
            _ => label.to_string(),
        };
        let labels = self.labels.iter().flatten().map(|label| name(*label));
        let names: Option<Vec<String>> = match (self.kind.task(), self.two_labels) {
            (Task::Binary | Task::Margin, Some(TwoLabels { positive, negative })) => {
                let negative = negative.map_or_else(|| format!("not {}", name(positive)), name);
                Some(vec![negative, name(positive)])
            }
            (Task::Binary | Task::Margin, None) if self.label_names.len() == 2 => {
                Some(self.label_names.clone())
            }
            (Task::Binary | Task::Margin | Task::Classes, _) => {
                Some(labels.collect()).filter(|names: &Vec<_>| !names.is_empty())
            }
            _ => None,
        };
        let threshold = match self.kind.task() {
            Task::Binary => Some(threshold),
            Task::Margin => Some(0.0),
            _ => None,
        };
        let Some(names) = names else {
            let path = self.path.display();
            return Err(format!(
                "--class: `{path}` has no labels of classes, which `train` keeps for models of classes of data in memory: leave it out, or train again"
            )
            .into());
        };
        Ok(ClassNames { names, threshold })
    }

    /// What the numbers of a sample are called: classes by their labels, others by the outputs of
    /// the model.
    pub(crate) fn titles(&self) -> Vec<String> {
        struct Outputs;
        impl ModelVisitor for Outputs {
            type Output = Vec<String>;
            fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> Vec<String> {
                M::OUTPUTS.iter().map(|output| output.name.to_owned()).collect()
            }
        }
        match self.kind.task() {
            // Without labels they are called by their positions.
            Task::Classes => self.class_names(0.0).map(|classes| classes.names).unwrap_or_default(),
            _ => self.kind.with(Outputs),
        }
    }
}
