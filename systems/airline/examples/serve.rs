//! Serves an airline by hand: `cargo run --release -p tidemark-airline --example serve -- 9080 [DIR] [NAME=VALUE…]`.
//! Without a directory everything is in memory. With `data` in front it is the data tier:
//! `… --example serve -- data 9085 DIR`, and then an airline with `sessions_in=data`.

use std::path::PathBuf;

use tidemark_airline::Airline;
use tidemark_airline::data::AirlineData;
use tidemark_service::{Durability, Options, ReferenceSystem};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tidemark_service::start_logs(tidemark_service::LogForm::Automatic);
    let mut options = Options { durability: Durability::Memory, ..Options::default() };
    let mut arguments = std::env::args().skip(1).peekable();
    let is_data = arguments.next_if_eq("data").is_some();
    for argument in arguments {
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
    let server = if is_data { AirlineData::bind(options) } else { Airline::bind(options) };
    server?.serve(tidemark_service::signals())?;
    Ok(())
}
