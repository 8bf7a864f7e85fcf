//! What tests of several crates need and no program does.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod limited_memory;
