//! What the system says that it did, for the pages: in figures beside what the driver saw, and over time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::{ComparedRuns, OperationsReader, Part, RecordError, Run};

use crate::bins::{Axis, RATE_SEEN_MIN_S, Values};
use crate::cube::{Cube, CubeError, DRIVER, Dimension, Input, Measured, Query, Value, window};
use crate::units::round;

/// Most kinds of operations on a page.
const KINDS_MAX: usize = 40;

/// Operations of one kind over time, and in figures over the measured window.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct OperationSeries {
    pub entity: String,
    pub operation: String,
    /// As the system says.
    pub measured: Measured,
    /// As the driver saw the same, where it did.
    pub driver: Option<Measured>,
    pub per_s: Values,
    pub median_us: Values,
    pub p95_us: Values,
    pub p99_us: Values,
}

/// An entity and what was done with it.
type Name = (String, String);

/// One kind of operations over the measured window.
#[derive(Debug)]
pub(crate) struct Kind {
    name: Name,
    system: Measured,
    driver: Option<Measured>,
}

/// The most frequent kinds in the measured window of a run, in order of their names; and how many are left out.
pub(crate) fn most_frequent(run: &Run) -> Result<(Vec<Kind>, usize), RecordError> {
    let mut kinds = kinds(&[run])?;
    let left_out = cut(&mut kinds, |kind| kind.system.count);
    Ok((kinds, left_out))
}

/// Keeps the most frequent in their order; how many are gone.
fn cut<T>(all: &mut Vec<T>, count: impl Fn(&T) -> u64) -> usize {
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(count(&all[*place])));
    let gone: BTreeSet<usize> = places.into_iter().skip(KINDS_MAX).collect();
    let mut places = 0..;
    all.retain(|_| places.next().is_some_and(|place| !gone.contains(&place)));
    gone.len()
}

/// All kinds in the measured windows of runs, which count as one, in order of their names.
fn kinds(runs: &[&Run]) -> Result<Vec<Kind>, RecordError> {
    let mut there = false;
    for run in runs {
        there |= OperationsReader::open(&run.dir)?.is_some();
    }
    if !there {
        return Ok(Vec::new());
    }
    let by = vec![Dimension::Source, Dimension::Entity, Dimension::Operation];
    let mut system = Vec::new();
    let mut driver = BTreeMap::new();
    for (values, measured) in rows(runs, &Query { by, ..Query::default() })? {
        let [Value::Text(source), Value::Text(entity), Value::Text(operation)] = values else { continue };
        match source.as_str() {
            DRIVER => _ = driver.insert((entity, operation), measured),
            _ => system.push(((entity, operation), measured)),
        }
    }
    let kind = |(name, system)| Kind { driver: driver.remove(&name), name, system };
    Ok(system.into_iter().map(kind).collect())
}

/// These kinds on the time axis of the load.
pub(crate) fn over_time(
    run: &Run,
    axis: Axis,
    kinds: Vec<Kind>,
) -> Result<Vec<OperationSeries>, RecordError> {
    let names: Vec<Name> = kinds.iter().map(|kind| kind.name.clone()).collect();
    let whole = Query { whole: true, ..Query::default() };
    let mut by_name = by_time(&[run], axis, &names, &whole)?;
    let series = |kind: Kind| {
        let bins = by_name.remove(&kind.name).unwrap_or_default();
        let time = |of: fn(&Measured) -> Option<u64>| -> Values {
            bins.iter().map(|bin| bin.as_ref().and_then(of).map(|us| us as f64)).collect()
        };
        OperationSeries {
            per_s: bins.iter().map(per_s).collect(),
            median_us: time(|of| of.median_us),
            p95_us: time(|of| of.p95_us),
            p99_us: time(|of| of.p99_us),
            measured: kind.system,
            driver: kind.driver,
            entity: kind.name.0,
            operation: kind.name.1,
        }
    };
    Ok(kinds.into_iter().map(series).collect())
}

/// Where nothing was done that is a figure, 0; the few milliseconds at the end are none.
fn per_s(bin: &Option<Measured>) -> Option<f64> {
    let Some(of) = bin else { return Some(0.0) };
    (of.count as f64 >= of.throughput_per_s * RATE_SEEN_MIN_S).then(|| round(of.throughput_per_s))
}

/// What was done in each bin, of all operations in it; nothing where none was.
fn by_time(
    runs: &[&Run],
    axis: Axis,
    names: &[Name],
    query: &Query,
) -> Result<HashMap<Name, Vec<Option<Measured>>>, RecordError> {
    let mut found: HashMap<Name, Vec<Option<Measured>>> =
        names.iter().map(|name| (name.clone(), vec![None; axis.bins])).collect();
    if found.is_empty() {
        return Ok(found);
    }
    // with the run among them, how long a cell covers is found at once
    let by = vec![Dimension::Run, Dimension::Second, Dimension::Entity, Dimension::Operation];
    let second_s = u32::try_from(axis.bin_s).unwrap_or(u32::MAX);
    for (values, measured) in rows(runs, &Query { by, second_s, ..query.clone() })? {
        let [_, Value::Number(bin), Value::Text(entity), Value::Text(operation)] = values else { continue };
        let bins = found.get_mut(&(entity, operation));
        let bin = usize::try_from(bin).ok().and_then(|bin| bins?.get_mut(bin));
        if let Some(bin) = bin {
            *bin = Some(measured);
        }
    }
    Ok(found)
}

/// The sides of one part of a comparison beside each other.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedOperations {
    /// Begin of each bin, seconds since the measured window began.
    seconds: Vec<u64>,
    bin_s: u64,
    kinds: Vec<ComparedKind>,
    /// The least frequent are not shown.
    left_out: usize,
}

/// One kind: an entry for each side, null where it did none of these.
#[derive(Debug, Serialize)]
struct ComparedKind {
    entity: String,
    operation: String,
    #[serde(rename = "variants")]
    sides: Vec<Option<Measured>>,
    p95_us: Vec<Values>,
}

/// What the sides did over their measured windows, the rounds of each as one; nothing where no system tells.
pub(crate) fn compared(
    runs: &ComparedRuns,
    part: Part,
    sides: &[&str],
) -> Result<Option<ComparedOperations>, RecordError> {
    let names = &runs.comparison.sides;
    let of_side = |name: &&str| -> Vec<&Run> {
        let index = names.iter().position(|of| of == name);
        index.map(|index| runs.of(index, part).collect()).unwrap_or_default()
    };
    let rounds: Vec<Vec<&Run>> = sides.iter().map(of_side).collect();
    let mut by_name: BTreeMap<Name, Vec<Option<Measured>>> = BTreeMap::new();
    for (side, runs) in rounds.iter().enumerate() {
        for kind in kinds(runs)? {
            by_name.entry(kind.name).or_insert_with(|| vec![None; rounds.len()])[side] = Some(kind.system);
        }
    }
    let mut found: Vec<_> = by_name.into_iter().collect();
    if found.is_empty() {
        return Ok(None);
    }
    let left_out = cut(&mut found, |(_, of)| of.iter().flatten().map(|figures| figures.count).sum());
    let mut seconds = 0;
    for run in rounds.iter().flatten() {
        let (start_us, end_us) = window(run, false)?;
        seconds = seconds.max(end_us.saturating_sub(start_us).div_ceil(1_000_000));
    }
    let axis = Axis::short(seconds, found.len() * rounds.len());
    let names: Vec<Name> = found.iter().map(|(name, _)| name.clone()).collect();
    let mut kinds: Vec<ComparedKind> = found
        .into_iter()
        .map(|((entity, operation), sides)| ComparedKind { entity, operation, sides, p95_us: Vec::new() })
        .collect();
    for runs in &rounds {
        let mut bins = by_time(runs, axis, &names, &Query::default())?;
        for (kind, name) in kinds.iter_mut().zip(&names) {
            let bins = bins.remove(name).unwrap_or_default();
            kind.p95_us
                .push(bins.iter().map(|bin| bin.and_then(|of| of.p95_us).map(|us| us as f64)).collect());
        }
    }
    Ok(Some(ComparedOperations { seconds: axis.starts_s(), bin_s: axis.bin_s, kinds, left_out }))
}

/// The cells of runs that count as one.
fn rows<const N: usize>(runs: &[&Run], query: &Query) -> Result<Vec<([Value; N], Measured)>, RecordError> {
    let cube = match Cube::of(&[(String::new(), Input::Runs(runs.to_vec()))], query) {
        Ok(cube) => cube,
        Err(CubeError::Record(error)) => return Err(error),
        // nothing is what was asked for
        Err(CubeError::Query(_)) => return Ok(Vec::new()),
    };
    let row = |row: crate::cube::Row| Some((row.values.try_into().ok()?, row.measured));
    Ok(cube.rows.into_iter().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    fn operation(
        writer: &mut tidemark_record::OperationsWriter,
        second: u64,
        entity: &str,
        duration_us: u64,
    ) {
        let at_us = second * 1_000_000 + 1;
        writer
            .push(&tidemark_record::Operation { at_us, entity, operation: "store", duration_us, status: 200 })
            .unwrap();
    }

    #[test]
    fn a_system_that_tells_nothing_has_no_operations() {
        let (_dir, run) = test_run::airline();
        let (kinds, left_out) = most_frequent(&run).unwrap();
        assert_eq!((kinds.len(), left_out), (0, 0));
        assert!(over_time(&run, Axis::of(&run, 0), kinds).unwrap().is_empty());
    }

    #[test]
    fn operations_stand_beside_what_the_driver_saw_and_warm_up_is_in_the_chart_only() {
        let (dir, run) = test_run::airline();
        test_run::with_operations(dir.path());
        let (kinds, _) = most_frequent(&run).unwrap();
        let shown = over_time(&run, Axis::of(&run, kinds.len()), kinds).unwrap();
        let [login, session] = &shown[..] else { panic!("two: {shown:?}") };
        assert_eq!((login.entity.as_str(), login.operation.as_str()), ("Login", "request"));
        // ten in each of three measured seconds, the first second is warm-up
        assert_eq!(
            (login.measured.count, login.measured.errors, login.measured.throughput_per_s),
            (30, 1, 10.0)
        );
        assert_eq!(login.per_s, [10.0, 10.0, 10.0, 10.0, 0.0].map(Some));
        // 1,600 to 1,780 in steps of 20
        assert_eq!(
            (login.median_us[0], login.p95_us[0], login.p99_us[4]),
            (Some(1_700.0), Some(1_780.0), None)
        );
        assert_eq!(login.driver.map(|of| of.count > 10), Some(true));
        // one of thirty failed
        assert!(login.measured.p95_us.is_some() && login.measured.p99_us.is_none());
        assert!(session.driver.is_none());
        assert_eq!(session.per_s, [5.0, 5.0, 5.0, 0.0, 0.0].map(Some));
    }

    #[test]
    fn percentiles_of_a_merged_bin_are_of_all_its_operations() {
        let (dir, run) = test_run::long(5_000, 1);
        let mut writer = tidemark_record::OperationsWriter::create(dir.path()).unwrap();
        for second in 0..5_000 {
            // one slow second of three: its percentile is no mean of three
            let (count, took_us) = if second % 3 == 0 { (2, 90_000) } else { (20, 1_000 + second % 3) };
            (0..count).for_each(|_| operation(&mut writer, second, "Feed", took_us));
        }
        writer.finish().unwrap();
        let (kinds, _) = most_frequent(&run).unwrap();
        let axis = Axis::of(&run, kinds.len());
        assert_eq!(axis.bin_s, 3);
        let shown = over_time(&run, axis, kinds).unwrap();
        let feed = &shown[0];
        assert_eq!(feed.per_s.len(), axis.bins);
        for bin in 0..axis.bins - 1 {
            let of = |values: &Values| values[bin];
            assert_eq!(of(&feed.per_s), Some(14.0));
            // of 42: 20 of 1,001, 20 of 1,002, 2 of 90,000
            assert_eq!((of(&feed.median_us), of(&feed.p95_us)), (Some(1_002.0), Some(1_002.0)));
            assert_eq!(of(&feed.p99_us), Some(90_000.0));
        }
    }

    #[test]
    fn many_kinds_are_cut_to_the_most_frequent() {
        let (dir, run) = test_run::airline();
        let mut writer = tidemark_record::OperationsWriter::create(dir.path()).unwrap();
        for kind in 0..50 {
            (0..=kind).for_each(|_| operation(&mut writer, 2, &format!("E{kind:02}"), 7));
        }
        writer.finish().unwrap();
        let (kinds, left_out) = most_frequent(&run).unwrap();
        assert_eq!((kinds.len(), left_out, kinds[0].name.0.as_str()), (KINDS_MAX, 10, "E10"));
        // many are as frequent as the least frequent one that is shown
        let mut counts = [vec![1; 2 * KINDS_MAX], vec![9]].concat();
        assert_eq!(cut(&mut counts, |count| *count), KINDS_MAX + 1);
        assert_eq!((counts.len(), counts.last()), (KINDS_MAX, Some(&9)));
    }

    #[test]
    fn sides_stand_beside_each_other_and_their_rounds_are_one() {
        let (_temp, runs) = crate::comparison::tests::runs();
        let names = ["REST", "WebSocket"];
        assert!(compared(&runs, Part::OwnLoad, &names).unwrap().is_none());
        for (round, run) in runs.of(0, Part::OwnLoad).enumerate() {
            let mut writer = tidemark_record::OperationsWriter::create(&run.dir).unwrap();
            (0..20).for_each(|n| operation(&mut writer, n % 10, "Trade", 1_000 * (round as u64 + 1)));
            writer.finish().unwrap();
        }
        let shown = compared(&runs, Part::OwnLoad, &names).unwrap().unwrap();
        assert_eq!((shown.seconds.len(), shown.bin_s, shown.kinds.len()), (10, 1, 1));
        let trade = &shown.kinds[0];
        let rest = trade.sides[0].unwrap();
        assert_eq!(
            (rest.count, rest.throughput_per_s, rest.median_us, rest.p95_us),
            (60, 2.0, Some(2_000), Some(3_000))
        );
        assert!(trade.sides[1].is_none());
        assert_eq!((trade.p95_us[0][0], trade.p95_us[1][0]), (Some(3_000.0), None));
    }
}
