//! Whose states lie somewhere, and which table they are of.

use std::sync::{Arc, Weak};

/// Who keeps states beside weights: one an updater, shared by its copies. So is the identity of a
/// table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenant(Arc<()>);

/// Says whose something is, and does not keep it wanted.
#[derive(Clone, Debug)]
pub(crate) struct Owner(Weak<()>);

impl Tenant {
    pub(crate) fn as_owner(&self) -> Owner {
        Owner(Arc::downgrade(&self.0))
    }
}

impl Owner {
    #[inline(always)]
    pub(crate) fn is(&self, tenant: &Tenant) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&tenant.0))
    }

    /// False once the updater and its copies are gone.
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}
