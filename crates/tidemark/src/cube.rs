//! `tidemark cube`: what a system says that it did, cut up.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use tidemark_record::summary::Summary;
use tidemark_record::{ComparedRuns, ComparisonFile, Part, RUNS_DIR, notes_on_operations, resolve};
use tidemark_report::cube::{
    self, Cube, Dialect, Dimension, Filter, Input, LogLines, Measure, Months, Query,
};
use tidemark_report::units::three_digits;

use crate::args::{CubeArguments, CubeFormat};
use crate::failure::Failure;
use crate::{carry_out, output};

/// Prints the cells that are asked for.
pub fn cube(arguments: &CubeArguments) -> Result<u8, Failure> {
    let months = if arguments.months_from_one { Months::FromOne } else { Months::FromZero };
    let is_published =
        matches!(arguments.format, CubeFormat::Published | CubeFormat::Postgres | CubeFormat::Mariadb);
    let is_shaped = !arguments.by.is_empty()
        || !arguments.measures.is_empty()
        || arguments.across.is_some()
        || arguments.rollup;
    if is_published && is_shaped {
        let reason = "the published forms have their own dimensions and measures; leave --by, --measure, --across and --rollup out";
        return Err(Failure::usage(reason));
    }
    if arguments.format == CubeFormat::Json && arguments.across.is_some() {
        return Err(Failure::usage("--across is for tables and csv; JSON has an object for each cell"));
    }
    let mut inputs = Vec::new();
    for name in &arguments.runs {
        inputs.extend(read(name, months)?);
    }
    tell_apart(&mut inputs);
    let query = query(arguments, &inputs);
    let measures =
        if arguments.measures.is_empty() { Measure::ALL.to_vec() } else { arguments.measures.clone() };
    let across = match arguments.across {
        Some(across) if !query.by.contains(&across) => {
            let reason = format!("--across {}: it is not one of --by", across.name());
            return Err(Failure::usage(reason));
        }
        None if inputs.len() > 1 && measures.len() == 1 => Some(Dimension::Run),
        across => across,
    };
    let wrong = |error: cube::CubeError| Failure::usage(error.to_string());
    for (name, note) in missing(&inputs) {
        output::remark(&format!("{name}: {note}"));
    }
    let text = match arguments.format {
        CubeFormat::Published => cube::published(&inputs, &query).map_err(wrong)?,
        CubeFormat::Postgres => star(&inputs, &query, Dialect::Postgres)?,
        CubeFormat::Mariadb => star(&inputs, &query, Dialect::MariaDb)?,
        form => {
            let cube = Cube::of(&inputs, &query).map_err(wrong)?;
            for name in &cube.silent {
                output::remark(&format!("{name}: its system logged no operations"));
            }
            if cube.rows.is_empty() {
                output::remark("no operation matches --where");
            }
            for note in due_and_answered(&inputs, &query) {
                output::remark(&note);
            }
            match form {
                CubeFormat::Csv => cube::csv(&cube, &measures, across),
                CubeFormat::Json => cube::json(&cube, &measures),
                _ => for_persons(&cube, &measures, across),
            }
        }
    };
    output::print(&text)?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// What the driver's operations are beside the report's rate, for each run in which the two differ.
fn due_and_answered(inputs: &[(String, Input)], query: &Query) -> Vec<String> {
    let asks_source = |of: &Filter| of.dimension == Dimension::Source;
    if query.whole || !(query.by.contains(&Dimension::Source) || query.filters.iter().any(asks_source)) {
        return Vec::new();
    }
    let runs = inputs.iter().flat_map(|(name, input)| match input {
        Input::Runs(runs) => runs.iter().map(|run| (name, &run.manifest.summary)).collect(),
        Input::Lines(_) => Vec::new(),
    });
    runs.filter_map(|(name, summary)| beside_the_report(name, summary)).collect()
}

/// Both rates, where requests failed or were answered late, so that more were due than answered.
fn beside_the_report(name: &str, summary: &Summary) -> Option<String> {
    let due_per_s = summary.requests as f64 / summary.measured_s.max(f64::MIN_POSITIVE);
    let answered_per_s = summary.achieved_per_s;
    ((due_per_s - answered_per_s).abs() > 0.01 * due_per_s).then(|| {
        format!(
            "{name}: the load generator's operations are all requests due in the measured window, failed and late ones too: {}/s; good \
             answers within it, the report's rate, are {}/s",
            three_digits(due_per_s),
            three_digits(answered_per_s)
        )
    })
}

/// As a table, with how many failed beside durations where any did.
fn for_persons(cube: &Cube, measures: &[Measure], across: Option<Dimension>) -> String {
    let has = |is: fn(&cube::Measured) -> bool| cube.rows.iter().any(|row| is(&row.measured));
    let mut measures = measures.to_vec();
    let has_time = measures.iter().any(|measure| measure.is_time());
    if has_time && !measures.contains(&Measure::Errors) && has(|of| of.errors > 0) {
        measures.push(Measure::Errors);
    }
    let unreached = |row: &cube::Row| measures.iter().any(|measure| measure.of(&row.measured).is_none());
    if cube.rows.iter().any(unreached) {
        output::remark(
            "- is not reached: so many operations failed, and a failed one is slower than every bound",
        );
    }
    output::table(cube, &measures, across)
}

/// What the runs note of operations that are not there.
fn missing(inputs: &[(String, Input)]) -> impl Iterator<Item = (&str, &str)> {
    let runs = inputs.iter().flat_map(|(name, input)| match input {
        Input::Runs(runs) => runs.iter().map(|run| (name.as_str(), run)).collect(),
        Input::Lines(_) => Vec::new(),
    });
    runs.flat_map(|(name, run)| notes_on_operations(&run.manifest.notes).map(move |note| (name, note)))
}

fn star(inputs: &[(String, Input)], query: &Query, dialect: Dialect) -> Result<String, Failure> {
    let (sql, unknown) =
        cube::star(inputs, query, dialect).map_err(|error| Failure::usage(error.to_string()))?;
    if !unknown.is_empty() {
        output::remark(&format!(
            "left out, as the published schema has no number for them: {}",
            unknown.join(", ")
        ));
    }
    Ok(sql)
}

/// What is asked for, where nothing is said in the usual way.
fn query(arguments: &CubeArguments, inputs: &[(String, Input)]) -> Query {
    let only_lines = inputs.iter().all(|(_, input)| matches!(input, Input::Lines(_)));
    let mut by = match arguments.by.is_empty() {
        false => arguments.by.clone(),
        true if only_lines => vec![Dimension::Date, Dimension::Entity, Dimension::Operation],
        true => vec![Dimension::Minute, Dimension::Entity, Dimension::Operation, Dimension::Source],
    };
    // several runs are never added up in silence
    if inputs.len() > 1 && !by.contains(&Dimension::Run) {
        by.insert(0, Dimension::Run);
    }
    let mut once = Vec::new();
    by.retain(|dimension| {
        let is_new = !once.contains(dimension);
        once.push(*dimension);
        is_new
    });
    Query {
        by,
        filters: arguments.filters.clone(),
        whole: arguments.whole,
        rollup: arguments.rollup,
        ..Query::default()
    }
}

/// A run, the sides of a comparison, or a log.
fn read(name: &str, months: Months) -> Result<Vec<(String, Input)>, Failure> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return Err(Failure::usage(format!("{name} is a file of a run; give the run's directory")));
    }
    // also a pipe
    if name == "-" || (path.exists() && !path.is_dir()) {
        return Ok(vec![(name.to_owned(), Input::Lines(lines(name, months)?))]);
    }
    let dir = resolve(name, Path::new(RUNS_DIR)).map_err(|error| Failure::usage(error.to_string()))?;
    if !ComparisonFile::is_at(&dir) {
        let run = carry_out::open(&dir)?;
        let shown = run.manifest.id.clone();
        return Ok(vec![(if shown.is_empty() { file_name(&dir) } else { shown }, Input::Runs(vec![run]))]);
    }
    let compared = ComparedRuns::open(&dir).map_err(|error| Failure::usage(error.to_string()))?;
    // operations compare where all have the same to do
    let has_equal = compared.comparison.runs.iter().any(|run| run.part == Part::EqualRate);
    let part = if has_equal { Part::EqualRate } else { Part::OwnLoad };
    let sides = (0..).zip(&compared.comparison.sides);
    let of = |(side, name): (usize, &String)| {
        (name.clone(), Input::Runs(compared.of(side, part).cloned().collect()))
    };
    Ok(sides.map(of).collect())
}

fn lines(name: &str, months: Months) -> Result<LogLines, Failure> {
    let read = match name {
        "-" => LogLines::read(io::stdin().lock(), months),
        path => File::open(path).and_then(|file| LogLines::read(BufReader::new(file), months)),
    };
    let log = read.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    for (number, reason) in &log.reasons {
        output::remark(&format!("{name}:{number}: skipped: {reason}"));
    }
    if log.missing > 0 {
        output::remark(&format!(
            "{name}: {} operations are missing: more were done than could be logged",
            log.missing
        ));
    }
    if log.skipped > log.reasons.len() as u64 {
        output::remark(&format!("{name}: {} lines were skipped in all", log.skipped));
    }
    if log.is_empty() {
        return Err(Failure::usage(format!(
            "{name} has no line that is understood: year|month|day|hour|minute|entity|operation|milliseconds"
        )));
    }
    Ok(log)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Gives inputs of one name a number.
fn tell_apart(inputs: &mut [(String, Input)]) {
    let given: BTreeSet<String> = inputs.iter().map(|(name, _)| name.clone()).collect();
    let mut taken = BTreeSet::new();
    for (name, _) in inputs {
        // one that is given is no number of another
        let numbered = (2..).map(|n| format!("{name} #{n}")).filter(|name| !given.contains(name));
        let free = [name.clone()].into_iter().chain(numbered).find(|name| !taken.contains(name));
        *name = free.unwrap_or_default();
        taken.insert(name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_due_is_told_beside_what_was_answered() {
        let totals = tidemark_record::Totals::new(&[]);
        let mut summary = tidemark_record::summarize(&totals, Path::new("x"));
        (summary.measured_s, summary.requests, summary.achieved_per_s) = (10.0, 371_740, 25_744.0);
        let says = beside_the_report("7", &summary).unwrap();
        assert!(says.contains("late ones too: 37,174/s; ") && says.ends_with("rate, are 25,744/s"), "{says}");
        summary.achieved_per_s = 37_100.0;
        assert_eq!(beside_the_report("7", &summary), None);
    }

    #[test]
    fn no_two_inputs_have_one_name() {
        let names = |given: &[&str]| {
            let input = |name: &&str| (name.to_string(), Input::Lines(LogLines::default()));
            let mut inputs: Vec<_> = given.iter().map(input).collect();
            tell_apart(&mut inputs);
            inputs.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["a", "b", "a", "a"]), ["a", "b", "a #2", "a #3"]);
        assert_eq!(names(&["a", "a #2", "a", "a #2"]), ["a", "a #2", "a #3", "a #2 #2"]);
    }
}
