//! Precision, recall and NDCG of the items that a model of ratings recommends.

use crate::Failure;
use crate::input::{DataFiles, Reading};
use crate::models::ModelVisitor;
use crate::models::saved::SavedModel;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use nnz::data::{AnyDataset, ColumnValues};
use nnz::formats::Dense;
use nnz::metric::RankedLists;
use nnz::prelude::*;
use nnz::training::predict;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// What is measured of recommendations.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ranking {
    /// matrix-factorization: precision, recall and NDCG of the first K items of each user, among
    /// all items that the model knows.
    #[arg(long, value_name = "K", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(super) top_k: Option<usize>,
    /// The ratings from which on an item is relevant; if not said, all items of the data are.
    #[arg(long, value_name = "RATING", requires = "top_k", allow_negative_numbers = true)]
    relevant: Option<f32>,
    /// Ratings whose items are not recommended to their users again: the training data.
    #[arg(long, value_name = "FILE", requires = "top_k")]
    seen: Option<PathBuf>,
}

/// Items by user, as numbers.
type ItemsOfUsers = BTreeMap<u32, HashSet<u32>>;

/// Ranks all items for each user of some data.
pub(super) fn rank(
    ranking: &Ranking,
    saved: &SavedModel,
    reading: &Reading,
    data: &AnyDataset,
) -> Result<Option<RankedLists>, Failure> {
    let Some(k) = ranking.top_k else { return Ok(None) };
    let Some((users, items)) = &saved.known.ids else {
        return Err("--top-k is for models of ratings, matrix-factorization: leave it out".into());
    };
    let (n_users, n_items) = (u32::try_from(users.len())?, u32::try_from(items.len())?);
    let known = |of_users: ItemsOfUsers| only_known(of_users, n_users, n_items);
    let relevant = known(items_of_users(data, ranking.relevant)?);
    let seen = match &ranking.seen {
        Some(path) => {
            let files = DataFiles::of(std::slice::from_ref(path))?;
            known(items_of_users(&reading.open(&files, &saved.known, false)?, None)?)
        }
        None => ItemsOfUsers::new(),
    };
    let visitor = Rank { saved, k, n_items, relevant: &relevant, seen: &seen };
    Ok(Some(saved.kind.with(visitor)?))
}

/// The items that each user has rated, from some rating on.
fn items_of_users(data: &AnyDataset, from: Option<f32>) -> Result<ItemsOfUsers, Failure> {
    let AnyDataset::Memory(data) = data else {
        return Err("--top-k is for data in memory: leave --stream out".into());
    };
    let values = |name| data.column(name).map(|column| column.values());
    let (Some(ColumnValues::Ids(users)), Some(ColumnValues::Ids(items))) =
        (values("user"), values("item"))
    else {
        return Err("--top-k: the data has no users and items".into());
    };
    let ratings = match values("rating") {
        Some(ColumnValues::Dense(ratings)) => ratings.values(),
        _ => &[],
    };
    let (users, items) = (users.view(), items.view());
    let mut of_users = ItemsOfUsers::new();
    for row in 0..data.n_rows() {
        let is_high = from.is_none_or(|from| ratings.get(row).is_some_and(|r| *r >= from));
        let pair = (u32::try_from(users.number(row)), u32::try_from(items.number(row)));
        if let ((Ok(user), Ok(item)), true) = (pair, is_high) {
            of_users.entry(user).or_default().insert(item);
        }
    }
    Ok(of_users)
}

/// Without users and items that the model does not know: all of them have one number, and no item
/// among them can be recommended.
fn only_known(mut of_users: ItemsOfUsers, n_users: u32, n_items: u32) -> ItemsOfUsers {
    of_users.retain(|user, _| *user < n_users);
    of_users.values_mut().for_each(|items| items.retain(|item| *item < n_items));
    of_users
}

struct Rank<'a> {
    saved: &'a SavedModel,
    k: usize,
    n_items: u32,
    relevant: &'a ItemsOfUsers,
    seen: &'a ItemsOfUsers,
}

impl ModelVisitor for Rank<'_> {
    type Output = Result<RankedLists>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<RankedLists> {
        /// The samples that are computed at a time.
        const SAMPLES: usize = 4096;
        let mut model = self.saved.load(make)?;
        let mut lists = RankedLists::new(self.k);
        let nothing = HashSet::new();
        for (user, relevant) in self.relevant {
            let seen = self.seen.get(user).unwrap_or(&nothing);
            let items: Vec<u32> = (0..self.n_items).filter(|item| !seen.contains(item)).collect();
            let users = Dense::new([items.len()], vec![*user; items.len()])?;
            let data: Dataset = Dataset::builder()
                .input("user", users)
                .input("item", Dense::new([items.len()], items.clone())?)
                .build()?;
            let scores = predict(&mut model, &data, SAMPLES)?;
            let mut ranked: Vec<(f32, u32)> = scores.values().iter().copied().zip(items).collect();
            // Of equal scores the item that was read first is ranked first.
            ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            // What was seen before is not recommended.
            let n_relevant = relevant.difference(seen).count();
            lists.add(ranked.iter().map(|(_, item)| relevant.contains(item)), n_relevant);
        }
        Ok(lists)
    }
}
