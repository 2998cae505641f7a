//! memcached.

mod figures;
mod read_back;
mod start;
mod stats;

pub use figures::Memcached as Figures;
pub use read_back::read;
pub use start::Memcached;
use stats::stats;
