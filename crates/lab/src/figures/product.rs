//! What a product is asked for, and what its answers mean: the seam between a product and everything that is the same
//! for all of them.

use std::collections::HashMap;
use std::io;

use tidemark_drive::Stream;

use crate::exchange::shown;

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All figures.
    All,
    /// Only what tells whether maintenance is under way.
    Maintenance,
}

/// A product that tells figures of itself.
pub trait Product: Sync {
    /// What the URLs of its servers begin with.
    fn schemes(&self) -> &'static [&'static str];

    /// Asks a server, over a connection that has been greeted.
    ///
    /// # Errors
    /// Where the connection breaks, or the answer is none.
    fn ask(&self, stream: &mut dyn Stream, scope: Scope) -> io::Result<Stats>;

    /// What is kept of that, in this order.
    fn figures(&self) -> &'static [Figure];

    /// What its servers do at times beside their work.
    fn maintenance(&self) -> &'static [MaintenanceKind] {
        &[]
    }
}

/// A figure that is kept.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Under which name it is kept.
    pub name: &'static str,
    /// What the product calls it.
    pub field: &'static str,
    /// What is kept of it.
    pub kind: FigureKind,
}

/// What is kept of what a server reports.
#[derive(Debug, Clone, Copy)]
pub enum FigureKind {
    /// The number as it is.
    Gauge,
    /// How fast a counter rose since the look before, per second.
    Rate,
    /// 1 where it is this word, else 0.
    Is(&'static str),
}

/// Something that a server does beside its work; all names are those of the product.
#[derive(Debug)]
pub struct MaintenanceKind {
    /// The word of faults and events.
    pub word: &'static str,
    /// The command that asks for it.
    pub command: &'static [&'static str],
    /// 1 while it is under way.
    pub under_way: &'static str,
    /// 1 where it is to begin soon.
    pub scheduled: &'static str,
    /// What is another value once it has been under way; the first of them that the server tells.
    pub counted: &'static [&'static str],
    /// `ok` where the last one succeeded.
    pub status: &'static str,
    /// Size of what it makes smaller, bytes.
    pub size: &'static str,
    /// Memory copied by the last one because it was written to meanwhile, bytes.
    pub copied: &'static str,
    /// How long the last fork took, microseconds.
    pub fork: &'static str,
}

impl MaintenanceKind {
    /// Whether it is under way; none where the server does not tell.
    pub fn is_under_way(&self, stats: &Stats) -> Option<bool> {
        stats.number(self.under_way).map(|number| number > 0)
    }

    /// What is another value once it has been under way, also where it failed at once.
    pub fn mark(&self, stats: &Stats) -> [Option<String>; 2] {
        let counted = self.counted.iter().find_map(|name| stats.text(name));
        [counted, stats.text(self.status)].map(|text| text.map(str::to_owned))
    }

    /// Why the last one failed, if so.
    pub fn failure(&self, stats: &Stats) -> Option<String> {
        let status = stats.text(self.status).filter(|status| *status != "ok")?;
        Some(format!("the store says \"{}\"", shown(status)))
    }
}

/// What a server reports of itself: texts by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats(HashMap<String, String>);

impl Stats {
    /// A text by its name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A count or size by its name; whatever else stands there is none.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

impl From<HashMap<String, String>> for Stats {
    fn from(texts: HashMap<String, String>) -> Stats {
        Stats(texts)
    }
}
