//! The gradient of `slice`.

pub mod cpu;
