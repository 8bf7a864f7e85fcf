//! Whose states lie somewhere, and which table they are of.

use std::sync::{Arc, Weak};

/// Who keeps states beside weights: one an updater, shared by its copies. So is the identity of a
/// table.
#[derive(Clone, Debug, Default)]
pub struct Tenant(Arc<()>);

/// Says whose something is, and does not keep it wanted.
#[derive(Clone, Debug)]
pub struct Owner(Weak<()>);

impl Tenant {
    /// The owner whose states lie beside the weights.
    pub fn as_owner(&self) -> Owner {
        Owner(Arc::downgrade(&self.0))
    }
}

impl Owner {
    /// True of the same owner.
    #[inline(always)]
    pub fn is(&self, tenant: &Tenant) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&tenant.0))
    }

    /// False once the updater and its copies are gone.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}
