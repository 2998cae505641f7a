//! Serves an airline by hand: `cargo run --release -p tidemark-airline --example serve -- 9080 [DIR] [NAME=VALUE…]`.
//! Without a directory everything is in memory.

use std::path::PathBuf;

use tidemark_airline::Airline;
use tidemark_service::{Durability, Options, ReferenceSystem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tidemark_service::start_logs(tidemark_service::LogForm::Automatic);
    let mut options = Options { durability: Durability::Memory, ..Options::default() };
    for argument in std::env::args().skip(1) {
        if let Some((name, value)) = argument.split_once('=') {
            match name {
                "workers" => options.workers = Some(value.parse()?),
                "durability" => options.durability = value.parse()?,
                _ => drop(options.settings.insert(name.into(), value.into())),
            }
        } else if let Ok(port) = argument.parse() {
            options.listen.set_port(port);
        } else {
            options.data_dir = Some(PathBuf::from(argument));
        }
    }
    if options.data_dir.is_some() && options.durability == Durability::Memory {
        options.durability = Durability::Synced;
    }
    Airline::bind(options)?.serve(tidemark_service::signals())?;
    Ok(())
}
