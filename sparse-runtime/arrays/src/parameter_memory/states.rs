//! The states that updaters keep beside the weights of a table.

use super::Table;
use super::blocks::Blocks;
use super::tenant::Tenant;
use sparse_core::element::Element;

impl<T: Element> Table<T> {
    /// Forgets the states that an updater keeps here.
    pub fn forget(&mut self, tenant: &Tenant) {
        if self.blocks.as_ref().is_some_and(|blocks| blocks.belong_to(tenant)) {
            self.values();
            self.blocks_count = false;
            self.blocks = None;
        }
        self.parked.retain(|blocks| !blocks.belong_to(tenant));
    }

    /// The states that an updater keeps here, row major; nothing where it keeps none. O(values).
    pub fn states_of<S: Copy>(&self, tenant: &Tenant) -> Vec<S> {
        let mut states = Vec::new();
        self.visit_states(tenant, |row| states.extend_from_slice(row));
        states
    }

    /// Calls `visit` with the states that an updater keeps beside each row, in order; not at all
    /// where it keeps none.
    pub fn visit_states<S: Copy>(&self, tenant: &Tenant, mut visit: impl FnMut(&[S])) {
        if let Some(blocks) = self.blocks_of(tenant) {
            (0..self.n_rows).for_each(|row| visit(blocks.states(row)));
        }
    }

    /// The states that an updater keeps beside one row, and up to which step the row is settled
    /// where that lies here; `None` where the updater keeps none.
    pub fn row_of<S: Copy>(&self, tenant: &Tenant, row: usize) -> Option<(&[S], Option<u32>)> {
        self.blocks_of(tenant).map(|blocks| (blocks.states(row), blocks.last(row)))
    }

    /// Replaces the states that an updater keeps here, row major. Nothing where it keeps none.
    /// O(states given).
    pub fn set_states<S: Copy>(&mut self, tenant: &Tenant, states: &[S]) {
        let blocks = self.blocks.iter_mut().chain(&mut self.parked);
        let mine = blocks.into_iter().find(|blocks| blocks.belong_to(tenant));
        if let Some(blocks) = mine {
            let n_states = blocks.layout().n_states.max(1);
            for (row, states) in states.chunks_exact(n_states).enumerate().take(self.n_rows) {
                blocks.states_mut(row).copy_from_slice(states);
            }
        }
    }

    /// The rows with what an updater keeps in them, where it keeps something.
    pub fn blocks_of_mut(&mut self, tenant: &Tenant) -> Option<&mut Blocks> {
        self.blocks.iter_mut().chain(&mut self.parked).find(|blocks| blocks.belong_to(tenant))
    }

    /// Calls `visit` with the step up to which each row is settled, in order, as an updater keeps
    /// it here; not at all where it does not.
    pub fn visit_last(&self, tenant: &Tenant, visit: impl FnMut(u32)) {
        if let Some(blocks) = self.blocks_of(tenant) {
            (0..self.n_rows).filter_map(|row| blocks.last(row)).for_each(visit);
        }
    }

    /// Replaces what [`visit_last`](Self::visit_last) visits. Memory that nobody has written is
    /// left alone where it says the same.
    pub fn set_last(&mut self, tenant: &Tenant, last: &[u32]) {
        let n_rows = self.n_rows;
        if let Some(blocks) = self.blocks_of_mut(tenant) {
            for (row, last) in last.iter().enumerate().take(n_rows) {
                if blocks.last(row) != Some(*last)
                    && let Some(place) = blocks.last_mut(row)
                {
                    *place = *last;
                }
            }
        }
    }

    /// Whether an updater keeps something here.
    pub fn is_of(&self, tenant: &Tenant) -> bool {
        self.blocks_of(tenant).is_some()
    }

    pub(super) fn blocks_of(&self, tenant: &Tenant) -> Option<&Blocks> {
        self.blocks.iter().chain(&self.parked).find(|blocks| blocks.belong_to(tenant))
    }
}
