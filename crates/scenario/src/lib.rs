//! The scenario language: one YAML file is an experiment.
//!
//! [`load_file`] reads, checks and compiles a scenario; [`Plan`] is what comes out, and all that the driver
//! executes. Whatever is wrong with the file comes back as [`Diagnostics`]: every mistake with line, column, the
//! line itself and, for a misspelt word, the nearest right one.
//!
//! ```
//! use std::path::Path;
//!
//! let text = "
//! sessions:
//!   reader:
//!     steps:
//!       - GET: /items/${random(1, 100)}
//!         label: Item
//!         check: {status: 200}
//! load: {rate: 500/s, hold: 10s}
//! objectives: [p99 < 50ms]
//! ";
//! let plan = tidemark_scenario::load_text("items.yaml", text, Path::new("."), &[])?;
//! assert_eq!(plan.labels, ["Item"]);
//!
//! let wrong = text.replace("GET", "GTE");
//! let diagnostics = tidemark_scenario::load_text("items.yaml", &wrong, Path::new("."), &[]).unwrap_err();
//! assert!(diagnostics.to_string().starts_with("items.yaml:5:9: unknown step \"GTE\"; did you mean GET?"));
//! # Ok::<(), tidemark_scenario::Diagnostics>(())
//! ```
//!
//! [`prices::Prices`] are read from price files by the same grammar, and as strictly.
//!
//! A scenario that a program makes is built as [source](source::Scenario) and written from that.
//!
//! The language is described once, in `language.rs` and, step by step, in `steps/`: one `record!` for each mapping
//! (`grammar/record.rs`). The checker, the [JSON Schema](schema::json_schema) and the structures that `compile/` reads are
//! made from that. At run time [`Expr`]s and [`Template`]s are evaluated over
//! a session's [`Slot`]s in a
//! [`Context`].
//!
//! # What holds
//!
//! - A request that needs a missing value is not sent ([`Unmet`]); what is no number never helps to meet an objective.
//! - A request is typed ([`plan::RequestKind`]) until the driver's protocol writes it.
//! - What is known only once a store has started stands as `{stores.NAME.FACT}` in the plan (`store_facts`): it is
//!   checked when the scenario is read, and filled in by the lab.
//! - What is written from source is read as the same, by us and by libyaml (`tests/source_any.rs`).

mod claims;
mod comparison;
mod compile;
pub mod context;
pub mod diagnostic;
mod encoding;
pub mod expr;
mod grammar;
pub mod keys;
mod language;
mod listed;
mod load;
mod objective;
pub mod outside;
mod override_load;
mod override_system;
mod pieces;
pub mod plan;
pub mod prices;
pub mod protobuf;
mod reader;
pub mod schema;
pub mod secrets;
mod settings;
mod shipped;
mod sink;
pub mod slot;
pub mod source;
mod stencil;
mod steps;
mod store_facts;
pub mod system_url;
pub mod template;
pub mod units;
pub mod value;
mod yaml;

pub use comparison::{Comparison, Experiment, ROUNDS_MAX, SIDES_MAX, Side, load_experiment_text};
pub use context::{Context, Shared};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use expr::{Expr, Unmet};
pub use listed::{Listed, ListedSetting, listed_file, listed_text};
pub use load::{check_file, check_text, load_file, load_shipped, load_text};
pub use override_load::OverrideError;
pub use override_system::command_words;
pub use plan::Plan;
pub use reader::{Checker, SettingCheck, ShippedSystem, StoreCheck, WrongSetting};
pub use secrets::Secrets;
pub use shipped::{shipped, shipped_names};
pub use slot::{Slot, Value};
pub use stencil::Stencil;
pub use steps::REFUSED_SQL;
pub use store_facts::{
    SERVICE_FACTS, STORE_FACTS, StoreFact, service_facts, store_fact, store_facts, store_servers,
    with_service_facts, with_store_facts,
};
pub use template::Template;
