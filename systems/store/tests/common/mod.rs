//! What holds of every store that has a role, and values to store.
#![allow(dead_code)]

pub mod caches;
#[cfg(feature = "mariadb")]
pub mod mariadb;
pub mod people;
pub mod roles;
#[cfg(any(feature = "mariadb", feature = "postgres", feature = "redis"))]
pub mod servers;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
pub mod survives;
pub mod values;

pub use values::*;
