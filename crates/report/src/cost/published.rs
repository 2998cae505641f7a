//! What the published experiments had, as far as it is known. Where no bill is known there is none here.

use tidemark_record::bill::{Amount, PublishedBill};
use tidemark_scenario::prices::Prices;

/// Scenarios begin with this; what ran; the year; the bill in whole US dollars.
type Row = (&'static str, &'static str, u16, Option<u64>);

const PUBLISHED: [Row; 3] = [
    (
        "airline",
        "185 cloud instances for the airline at web scale; no bill is known (blog of the Acme Air benchmark, 2013)",
        2013,
        None,
    ),
    (
        "newsfeed",
        "5 m1.medium, a db.m1.medium and an m1.large for about two hours of load (write-up of the news feed's load test, 2014)",
        2014,
        Some(10),
    ),
    (
        "ingest",
        "19 machines: 4 for the load, 8 for the intake, 7 for Cassandra; no bill is known (write-up of the intake, 2015)",
        2015,
        None,
    ),
];

/// What the experiment of this scenario had.
pub(super) fn of(scenario: &str, prices: &Prices) -> Option<PublishedBill> {
    let is_it =
        |name: &str| scenario.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let (_, what, year, usd) = PUBLISHED.iter().find(|(name, ..)| is_it(name))?;
    let usd = usd.map(Amount::whole);
    let factor = prices.inflation.get(year);
    let today = usd.zip(factor).and_then(|(usd, factor)| usd.part(factor.nano(), Amount::whole(1).nano()));
    Some(PublishedBill { what: (*what).to_owned(), year: *year, usd, usd_today: today })
}
