//! The stores that the lab knows, a folder for each product: how it is started, what it tells of itself, how it is read back.

pub mod aerospike;
pub mod cassandra;
mod etcd;
mod eureka;
mod kafka;
mod mariadb;
pub mod memcached;
mod opensearch;
mod postgres;
pub mod redis;
mod solr;

use tidemark_scenario::plan::Product;

use self::cassandra::Cassandra;
use self::etcd::Etcd;
use self::eureka::Eureka;
use self::kafka::Kafka;
use self::mariadb::Mariadb;
use self::memcached::Memcached;
use self::opensearch::OpenSearch;
use self::postgres::Postgres;
use self::redis::{DRAGONFLY, GARNET, KEYDB, REDIS, VALKEY};
use self::solr::Solr;
use crate::figures::product;
use crate::stores::launcher::Launcher;

/// Those that tell figures of themselves.
pub static WITH_FIGURES: &[&dyn product::Product] = &[&redis::Redis, &memcached::Figures];

/// The launcher of a product.
pub fn launcher(product: Product) -> &'static dyn Launcher {
    match product {
        Product::Cassandra => &Cassandra,
        Product::Kafka => &Kafka,
        Product::Redis => &REDIS,
        Product::Postgres => &Postgres,
        Product::Mariadb => &Mariadb,
        Product::Opensearch => &OpenSearch,
        Product::Solr => &Solr,
        Product::Valkey => &VALKEY,
        Product::Keydb => &KEYDB,
        Product::Dragonfly => &DRAGONFLY,
        Product::Garnet => &GARNET,
        Product::Memcached => &Memcached,
        Product::Eureka => &Eureka,
        Product::Etcd => &Etcd,
    }
}
