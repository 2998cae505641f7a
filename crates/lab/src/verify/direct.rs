//! A store that is read past its system: which there are.

use std::path::Path;

use tidemark_drive::Target;

use super::answers::Matching;
use super::directory::Directory;
use super::recipe::{Recipe, Store};
use super::rows::Rows;
use super::search::DirectStore;
use crate::products::aerospike::Set;
use crate::products::cassandra::Messages;
use crate::products::{memcached, redis};
use crate::shipped::ShippedStores;

/// The store that a recipe names, or what is at this target as a store; none if the system's API is asked instead.
pub fn direct_store<'a>(
    recipe: &'a Recipe,
    run_dir: &Path,
    target: &'a Target,
    shipped: &dyn ShippedStores,
) -> Option<Box<dyn DirectStore + 'a>> {
    Some(match recipe.store.as_ref()? {
        Store::Directory { dir, durability } => {
            Box::new(Directory::open(run_dir.join(dir), *durability, shipped))
        }
        Store::Cassandra(table) => Box::new(Messages::open(table, shipped)),
        Store::Redis { keys } => Box::new(Matching::new(target, keys, redis::read)),
        Store::Memcached { listed } => Box::new(Matching::new(target, listed, memcached::read)),
        Store::Aerospike { set } => Box::new(Set::new(target, set)),
        Store::Rows { statement } => Box::new(Rows::new(target, statement)),
    })
}
