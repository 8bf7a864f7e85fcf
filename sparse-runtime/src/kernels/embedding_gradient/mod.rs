//! Rows added up by id. O(ids · size of a row), and of a dense result its size.

pub mod cpu;
