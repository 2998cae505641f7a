//! The products, each with its launcher.

use tidemark_scenario::plan::Product;

use super::cassandra::Cassandra;
use super::kafka::Kafka;
use super::launcher::Launcher;
use super::mariadb::Mariadb;
use super::opensearch::OpenSearch;
use super::postgres::Postgres;
use super::redis::Redis;

/// The launcher of a product.
pub fn launcher(product: Product) -> &'static dyn Launcher {
    match product {
        Product::Cassandra => &Cassandra,
        Product::Kafka => &Kafka,
        Product::Redis => &Redis,
        Product::Postgres => &Postgres,
        Product::Mariadb => &Mariadb,
        Product::Opensearch => &OpenSearch,
    }
}
