//! The stores from outside. One binary: each would be linked with everything again.

mod caches;
mod cassandra;
mod common;
mod embedded;
mod kill;
mod mariadb;
mod messages;
mod model;
mod news_feed;
mod people;
mod postgres;
mod redis;
