//! The products, each with its launcher.

use tidemark_scenario::plan::Product;

use super::cassandra::Cassandra;
use super::kafka::Kafka;
use super::launcher::Launcher;
use super::mariadb::Mariadb;
use super::memcached::Memcached;
use super::opensearch::OpenSearch;
use super::postgres::Postgres;
use super::redis::{DRAGONFLY, GARNET, KEYDB, REDIS, VALKEY};

/// The launcher of a product.
pub fn launcher(product: Product) -> &'static dyn Launcher {
    match product {
        Product::Cassandra => &Cassandra,
        Product::Kafka => &Kafka,
        Product::Redis => &REDIS,
        Product::Postgres => &Postgres,
        Product::Mariadb => &Mariadb,
        Product::Opensearch => &OpenSearch,
        Product::Valkey => &VALKEY,
        Product::Keydb => &KEYDB,
        Product::Dragonfly => &DRAGONFLY,
        Product::Garnet => &GARNET,
        Product::Memcached => &Memcached,
    }
}
