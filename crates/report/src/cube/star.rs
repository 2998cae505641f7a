//! A cube in the published forms: its lines for each minute, and its star schema.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::clock::fields;
use super::lines::{ENTITIES, OPERATIONS};
use super::{Cube, CubeError, Dimension, Input, Measured, Query, Value};
use crate::text::clean;

/// Whose SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    MariaDb,
}

/// What happened within a minute: entity, operation, measures.
type Minute = Vec<(String, String, Measured)>;

/// Minutes by the clock: year, month from 0, day, hour, minute.
fn minutes(inputs: &[(String, Input)], query: &Query) -> Result<BTreeMap<[i64; 5], Minute>, CubeError> {
    if inputs.len() > 1 && inputs.iter().any(|(_, input)| matches!(input, Input::Runs(_))) {
        let reason = "the published forms do not tell runs apart; give one run, or log files only";
        return Err(CubeError::Query(reason.into()));
    }
    let by = vec![Dimension::Date, Dimension::Entity, Dimension::Operation];
    let query = Query { by, rollup: false, failed_as_timed: true, ..query.clone() };
    let mut minutes: BTreeMap<[i64; 5], Minute> = BTreeMap::new();
    for row in Cube::of(inputs, &query)?.rows {
        let [Value::Date(date), entity, operation] = &row.values[..] else { continue };
        let [year, month, day, hour, minute] = fields(*date);
        let of_minute = minutes.entry([year, month - 1, day, hour, minute]).or_default();
        of_minute.push((entity.to_string(), operation.to_string(), row.measured));
    }
    Ok(minutes)
}

/// Every operation counts, so that there is always one.
fn ms(us: Option<u64>) -> u64 {
    us.unwrap_or_default() / 1000
}

/// A line for each minute, as the published summaries have it: `2014-1-3 0:33`, a tab, and for each entity and operation
/// `Outbound|post=20,11,20`: how many, upper median and 95th percentile in milliseconds. Months count from 0.
///
/// # Errors
/// As for [`Cube::of`].
pub fn published(inputs: &[(String, Input)], query: &Query) -> Result<String, CubeError> {
    let line = |([year, month, day, hour, minute], operations): ([i64; 5], Minute)| {
        let operations: Vec<String> = operations
            .iter()
            .map(|(entity, operation, of)| {
                let kind = clean(&format!("{entity}|{operation}"));
                format!("{kind}={},{},{}", of.count, ms(of.median_us), ms(of.p95_us))
            })
            .collect();
        format!("{year}-{month}-{day} {hour}:{minute}\t{}\n", operations.join(":"))
    };
    let mut lines: Vec<String> = minutes(inputs, query)?.into_iter().map(line).collect();
    // as the published summaries are: in the order of the text
    lines.sort();
    Ok(lines.concat())
}

/// The published routines by which others load the schema: one gives a minute's id, one puts a fact in. Called again with
/// the same they change nothing, as the unique keys demand.
fn routines(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "CREATE OR REPLACE FUNCTION InsertTimeData(int, int, int, int, int) RETURNS int LANGUAGE sql AS \
             'INSERT INTO timeperiod (year, month, day, hour, minute) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (year, month, day, hour, minute) DO UPDATE SET year = excluded.year RETURNING time_id';
CREATE OR REPLACE FUNCTION InsertFactData(int, int, int, int, int, int) RETURNS void LANGUAGE sql AS \
             'INSERT INTO fact (throughput, mode, vigintile, activity_id, entity_id, time_id) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (time_id, entity_id, activity_id) DO UPDATE SET \
             throughput = excluded.throughput, mode = excluded.mode, vigintile = excluded.vigintile';
"
        }
        Dialect::MariaDb => {
            "CREATE OR REPLACE PROCEDURE InsertTimeData($year int, $month int, $day int, $hour int, $minute int) \
             INSERT INTO timeperiod (year, month, day, hour, minute) VALUES ($year, $month, $day, $hour, $minute) \
             ON DUPLICATE KEY UPDATE year = VALUES(year) RETURNING time_id AS id;
CREATE OR REPLACE PROCEDURE InsertFactData($throughput int, $mode int, $vigintile int, $activity_id int, \
             $entity_id int, $time_id int) \
             INSERT INTO fact (throughput, mode, vigintile, activity_id, entity_id, time_id) \
             VALUES ($throughput, $mode, $vigintile, $activity_id, $entity_id, $time_id) ON DUPLICATE KEY UPDATE \
             throughput = VALUES(throughput), mode = VALUES(mode), vigintile = VALUES(vigintile);
"
        }
    }
}

/// SQL that makes the published star schema (`timeperiod`, `entity`, `activity`, `fact`, and the routines
/// `InsertTimeData` and `InsertFactData`) where it is not there, and puts each minute in; `mode` is the median and
/// `vigintile` the 95th percentile in milliseconds, as published. What is there for the same minute, entity and activity
/// is replaced. Also the entities and operations that the schema has no number for; they are left out.
///
/// # Errors
/// As for [`Cube::of`].
pub fn star(
    inputs: &[(String, Input)],
    query: &Query,
    dialect: Dialect,
) -> Result<(String, Vec<String>), CubeError> {
    let minutes = minutes(inputs, query)?;
    let (serial, ignore, of_nothing) = match dialect {
        Dialect::Postgres => ("serial", "", ""),
        Dialect::MariaDb => ("int AUTO_INCREMENT", " IGNORE", "FROM DUAL "),
    };
    let or_nothing = match dialect {
        Dialect::Postgres => " ON CONFLICT (year, month, day, hour, minute) DO NOTHING",
        Dialect::MariaDb => "",
    };
    let or_replace = match dialect {
        Dialect::Postgres => {
            "ON CONFLICT (time_id, entity_id, activity_id) DO UPDATE SET throughput = excluded.throughput, \
             mode = excluded.mode, vigintile = excluded.vigintile"
        }
        Dialect::MariaDb => {
            "ON DUPLICATE KEY UPDATE throughput = VALUES(throughput), mode = VALUES(mode), \
             vigintile = VALUES(vigintile)"
        }
    };
    // one transaction: where the tables that are there do not fit, nothing is loaded
    let mut out = format!(
        "START TRANSACTION;
CREATE TABLE IF NOT EXISTS timeperiod (time_id {serial} PRIMARY KEY, year int NOT NULL, month int NOT NULL, \
         day int NOT NULL, hour int NOT NULL, minute int NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS timeperiod_once ON timeperiod (year, month, day, hour, minute);
CREATE TABLE IF NOT EXISTS entity (entity_id int PRIMARY KEY, name varchar(30) NOT NULL);
CREATE TABLE IF NOT EXISTS activity (activity_id int PRIMARY KEY, name varchar(50) NOT NULL);
CREATE TABLE IF NOT EXISTS fact (throughput int NOT NULL, mode int NOT NULL, vigintile int NOT NULL, \
         activity_id int NOT NULL, entity_id int NOT NULL, time_id int NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS fact_once ON fact (time_id, entity_id, activity_id);
"
    );
    out += routines(dialect);
    if dialect == Dialect::MariaDb {
        // its tables are made at once, whatever becomes of the transaction
        out += "START TRANSACTION;\n";
    }
    for (names, table) in [(&ENTITIES[..], "entity"), (&OPERATIONS[..], "activity")] {
        for (id, name) in (1..).zip(names) {
            let _ = writeln!(
                out,
                "INSERT INTO {table} ({table}_id, name) SELECT {id}, '{name}' {of_nothing}\
                 WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE name = '{name}');"
            );
        }
    }
    let mut unknown = Vec::new();
    let int = |number: u64| number.min(i32::MAX as u64);
    for ([year, month, day, hour, minute], operations) in minutes {
        let _ = writeln!(
            out,
            "INSERT{ignore} INTO timeperiod (year, month, day, hour, minute) \
             VALUES ({year}, {month}, {day}, {hour}, {minute}){or_nothing};"
        );
        for (entity, operation, of) in operations {
            if !ENTITIES.contains(&&*entity) || !OPERATIONS.contains(&&*operation) {
                unknown.push(clean(&format!("{entity} {operation}")));
                continue;
            }
            let (throughput, mode, vigintile) = (int(of.count), int(ms(of.median_us)), int(ms(of.p95_us)));
            let _ = writeln!(
                out,
                "INSERT INTO fact (throughput, mode, vigintile, activity_id, entity_id, time_id) \
                 SELECT {throughput}, {mode}, {vigintile}, activity_id, entity_id, time_id \
                 FROM timeperiod, entity, activity WHERE entity.name = '{entity}' AND activity.name = '{operation}' \
                 AND year = {year} AND month = {month} AND day = {day} AND hour = {hour} AND minute = {minute} \
                 {or_replace};"
            );
        }
    }
    out += "COMMIT;\n";
    unknown.sort();
    unknown.dedup();
    Ok((out, unknown))
}
