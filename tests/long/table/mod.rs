//! The operator table held to its laws by running it: every rule against an independent oracle,
//! every gradient against finite differences, every kernel for allocations. All iterate over the
//! table, so that a new row is tested without a line here.

mod allocation;
mod applications;
mod given;
mod gradients;
mod layers;
mod layout;
mod losses;
mod moved;
mod naive;
mod oracle;
mod order;
mod simplified;
