//! The tools, one file for each family.

mod ab;
mod bare;
mod bombardier;
mod h2load;
mod hey;
mod k6;
mod oha;
mod tidemark;
mod vegeta;
mod wrk;

use crate::tool::Tool;

/// All of them, in the order in which the tables show them.
pub fn all() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(tidemark::Tidemark { io: None }),
        Box::new(tidemark::Tidemark { io: Some("epoll") }),
        Box::new(tidemark::Tidemark { io: Some("io_uring") }),
        Box::new(bare::Bare { io: "epoll" }),
        Box::new(bare::Bare { io: "uring" }),
        Box::new(wrk::Wrk { name: "wrk" }),
        Box::new(wrk::Wrk { name: "wrk2" }),
        Box::new(ab::Ab),
        Box::new(h2load::H2load),
        Box::new(bombardier::Bombardier),
        Box::new(oha::Oha),
        Box::new(hey::Hey),
        Box::new(vegeta::Vegeta),
        Box::new(k6::K6),
    ]
}
