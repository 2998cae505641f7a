//! Metrics of a scenario's own: numbers that it measures, of which the driver knows the name and nothing else.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::HISTOGRAM_DIGITS;
use crate::distribution::rank;
use crate::histogram::{Merged, merge_counts, merge_merged, new_merged};

/// What a histogram of such numbers counts in: it holds whole numbers, so that fractions are told apart down to a millionth.
/// A power of two, so that whole numbers up to 2,047 stay what they are.
pub const UNITS_PER_ONE: f64 = (1 << 20) as f64;
/// Largest number that is taken; none is below 0.
pub const OWN_VALUE_MAX: f64 = 1e12;
/// Highest value of such a histogram, in its units.
const UNITS_MAX: u64 = 1 << 60;

/// What becomes of a metric's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OwnKind {
    /// Their distribution is told.
    #[default]
    Histogram,
    /// They are added up.
    Counter,
}

/// A metric of the scenario's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnMetric {
    /// Its name.
    pub name: String,
    /// What becomes of its numbers.
    pub kind: OwnKind,
    /// What they are in, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// What a thread measured of one metric in an interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnSeries<N = OwnNumbers> {
    /// Index into the run's own metrics.
    pub metric: u16,
    /// How many numbers.
    pub count: u64,
    /// All of them together.
    pub sum: f64,
    /// The smallest; 0 where there is none.
    pub min: f64,
    /// The largest; 0 where there is none.
    pub max: f64,
    /// How often there was no number, or one that is not taken.
    pub no_number: u64,
    /// What there was instead, the first time.
    pub example: Option<String>,
    /// The numbers, in [units](UNITS_PER_ONE); none of a counter.
    pub values: Option<N>,
}

/// Numbers of one metric, counted in [units](UNITS_PER_ONE).
#[derive(Debug, Clone)]
pub struct OwnNumbers(Histogram<u32>);

impl OwnNumbers {
    fn new() -> OwnNumbers {
        let counted = Histogram::new_with_bounds(1, UNITS_MAX, HISTOGRAM_DIGITS);
        OwnNumbers(counted.expect("the bounds are constants that hdrhistogram accepts"))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    fn add_packed(&mut self, more: PackedNumbers<'_>) {
        // they were checked
        let _ = walk(more.0, |units, count| self.0.saturating_record_n(units, count));
    }
}

/// The same as bytes: in the journal, and from driver to coordinator. Each number that was counted, the lowest first, is its
/// distance to the one before and its count, in postcard's form.
#[derive(Debug, Clone, Copy)]
pub struct PackedNumbers<'a>(&'a [u8]);

impl<'a> PackedNumbers<'a> {
    /// These bytes; none where they are no numbers.
    fn checked(bytes: &'a [u8]) -> Option<PackedNumbers<'a>> {
        let mut highest = 0;
        walk(bytes, |units, _| highest = units)?;
        (highest <= UNITS_MAX).then_some(PackedNumbers(bytes))
    }
}

/// Tells of all numbers; none where the bytes are not whole.
fn walk(mut bytes: &[u8], mut tell: impl FnMut(u64, u32)) -> Option<()> {
    let mut units = 0_u64;
    while !bytes.is_empty() {
        let ((more, count), rest) = postcard::take_from_bytes::<(u64, u32)>(bytes).ok()?;
        units = units.checked_add(more)?;
        tell(units, count);
        bytes = rest;
    }
    Some(())
}

impl Serialize for OwnNumbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut packed, mut before) = (Vec::new(), 0);
        for one in self.0.iter_recorded() {
            let units = one.value_iterated_to().min(UNITS_MAX);
            let pair = (units - before, one.count_at_value());
            packed = postcard::to_extend(&pair, packed).map_err(<S::Error as ser::Error>::custom)?;
            before = units;
        }
        serializer.serialize_bytes(&packed)
    }
}

impl<'de> Deserialize<'de> for OwnNumbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let packed = PackedNumbers::deserialize(deserializer)?;
        let mut numbers = OwnNumbers::new();
        numbers.add_packed(packed);
        Ok(numbers)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for PackedNumbers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        PackedNumbers::checked(bytes).ok_or_else(|| de::Error::custom("not numbers and their counts"))
    }
}

impl<N> OwnSeries<N> {
    /// What tells it from others of an interval.
    pub(crate) fn key(&self) -> u16 {
        self.metric
    }
}

impl OwnSeries {
    /// Of a metric of which nothing was measured yet.
    pub fn empty(metric: u16, kind: OwnKind) -> OwnSeries {
        OwnSeries {
            metric,
            count: 0,
            sum: 0.0,
            min: 0.0,
            max: 0.0,
            no_number: 0,
            example: None,
            values: (kind == OwnKind::Histogram).then(OwnNumbers::new),
        }
    }

    /// Whether such a number is taken.
    pub fn takes(number: f64) -> bool {
        (0.0..=OWN_VALUE_MAX).contains(&number)
    }

    /// Adds a number that is [taken](OwnSeries::takes).
    pub fn add(&mut self, number: f64) {
        (self.min, self.max) = ends(self.count, (self.min, self.max), (number, number));
        self.count += 1;
        self.sum += number;
        if let Some(values) = &mut self.values {
            values.0.saturating_record((number * UNITS_PER_ONE).round() as u64);
        }
    }

    /// Of the same metric, of which nothing was measured yet.
    pub(crate) fn empty_as(of: &OwnSeries<PackedNumbers<'_>>) -> OwnSeries {
        OwnSeries::empty(of.metric, if of.values.is_some() { OwnKind::Histogram } else { OwnKind::Counter })
    }

    /// Adds what another thread measured.
    pub(crate) fn add_series(&mut self, more: &OwnSeries<PackedNumbers<'_>>) {
        if more.count > 0 {
            (self.min, self.max) = ends(self.count, (self.min, self.max), (more.min, more.max));
        }
        self.count += more.count;
        self.sum += more.sum;
        self.no_number += more.no_number;
        if self.example.is_none() {
            self.example.clone_from(&more.example);
        }
        if let (Some(values), Some(more)) = (&mut self.values, more.values) {
            values.add_packed(more);
        }
    }

    /// Nothing was measured any more; all room is kept.
    pub fn clear(&mut self) {
        let OwnSeries { metric: _, count, sum, min, max, no_number, example, values } = self;
        (*count, *sum, *min, *max, *no_number, *example) = (0, 0.0, 0.0, 0.0, 0, None);
        values.iter_mut().for_each(|values| values.0.reset());
    }
}

/// The smallest and the largest number, where there were so many before.
fn ends(before: u64, (min, max): (f64, f64), more: (f64, f64)) -> (f64, f64) {
    if before == 0 { more } else { (min.min(more.0), max.max(more.1)) }
}

/// What was measured of one metric: by several threads, in several intervals.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "as in `OwnSeries`")]
pub struct OwnValues {
    pub count: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
    pub no_number: u64,
    pub example: Option<String>,
    pub values: Merged,
}

impl Default for OwnValues {
    fn default() -> Self {
        OwnValues {
            count: 0,
            sum: 0.0,
            min: 0.0,
            max: 0.0,
            no_number: 0,
            example: None,
            values: new_merged(),
        }
    }
}

impl OwnValues {
    /// Adds what one thread measured in one interval.
    pub fn add(&mut self, series: &OwnSeries) {
        if let Some(values) = &series.values {
            merge_counts(&mut self.values, &values.0);
        }
        let OwnSeries { count, sum, min, max, no_number, .. } = *series;
        self.add_counts(count, sum, (min, max));
        self.add_absent(no_number, series.example.as_ref());
    }

    /// Adds what was added up already.
    pub fn add_values(&mut self, other: &OwnValues) {
        merge_merged(&mut self.values, &other.values);
        let OwnValues { count, sum, min, max, no_number, .. } = *other;
        self.add_counts(count, sum, (min, max));
        self.add_absent(no_number, other.example.as_ref());
    }

    fn add_counts(&mut self, count: u64, sum: f64, of: (f64, f64)) {
        if count > 0 {
            (self.min, self.max) = ends(self.count, (self.min, self.max), of);
            self.count += count;
            self.sum += sum;
        }
    }

    fn add_absent(&mut self, no_number: u64, example: Option<&String>) {
        self.no_number += no_number;
        if self.example.is_none() {
            self.example = example.cloned();
        }
    }

    /// The mean of all numbers; none of none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The number that at least this share (0 to 1) did not exceed, to three digits; none of none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.at_rank(rank(share, self.count))
    }

    /// The number at a rank, from 1, in ascending order; none where there are not so many.
    pub fn at_rank(&self, rank: u64) -> Option<f64> {
        let all = self.values.len();
        match rank {
            0 => return None,
            _ if rank > all => return None,
            // both ends are known exactly
            1 => return Some(self.min),
            _ if rank == all => return Some(self.max),
            _ => {}
        }
        // half a rank below, as in `Distribution`
        let units = self.values.value_at_quantile((rank as f64 - 0.5) / all as f64);
        // the low end of what counts as the same: whole numbers stay whole
        let number = self.values.lowest_equivalent(units) as f64 / UNITS_PER_ONE;
        Some(number.clamp(self.min, self.max))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back_and_is_added_as_it_is(
            numbers in prop::collection::vec(prop_oneof![0.0..3.0, 0.0..OWN_VALUE_MAX], 0..200),
            others in prop::collection::vec(0.0..3.0, 0..200),
        ) {
            let [mut one, mut other, mut both] = [(); 3].map(|()| OwnSeries::empty(0, OwnKind::Histogram));
            others.iter().for_each(|number| one.add(*number));
            numbers.iter().for_each(|number| other.add(*number));
            others.iter().chain(&numbers).for_each(|number| both.add(*number));
            let bytes = postcard::to_stdvec(&other).unwrap();
            one.add_series(&postcard::from_bytes(&bytes).unwrap());
            prop_assert_eq!(&one.values.unwrap().0, &both.values.unwrap().0);
            prop_assert_eq!((one.count, one.min, one.max), (both.count, both.min, both.max));
            let again: OwnSeries = postcard::from_bytes(&bytes).unwrap();
            prop_assert_eq!(again.values.unwrap().0, other.values.unwrap().0);
        }

        #[test]
        fn any_bytes_are_numbers_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(packed) = PackedNumbers::checked(&bytes) {
                OwnNumbers::new().add_packed(packed);
            }
        }
    }

    #[test]
    fn numbers_that_are_cut_off_or_too_high_are_refused() {
        let packed = |pairs: &[(u64, u32)]| -> Vec<u8> {
            pairs.iter().flat_map(|pair| postcard::to_stdvec(pair).unwrap()).collect()
        };
        let whole = packed(&[(300, 2), (UNITS_MAX - 300, 700)]);
        assert!(PackedNumbers::checked(&whole).is_some());
        assert!(PackedNumbers::checked(&whole[..whole.len() - 1]).is_none());
        assert!(PackedNumbers::checked(&packed(&[(300, 2), (UNITS_MAX, 1)])).is_none());
        assert!(PackedNumbers::checked(&packed(&[(300, 2), (u64::MAX, 1)])).is_none());
    }

    fn of(numbers: &[f64]) -> OwnValues {
        let mut series = OwnSeries::empty(0, OwnKind::Histogram);
        numbers.iter().for_each(|number| series.add(*number));
        let mut all = OwnValues::default();
        all.add(&series);
        all
    }

    #[test]
    fn whole_numbers_stay_what_they_are() {
        for number in (0..2_048).map(f64::from) {
            let all = of(&[number, 0.0, 1e6]);
            assert_eq!(all.quantile(0.5), Some(number), "{number}");
        }
    }

    #[test]
    fn fractions_and_large_numbers_keep_three_digits() {
        for number in [0.0004, 0.35, 19.99, 123_456.7, 5e9, OWN_VALUE_MAX] {
            let all = of(&[0.0, number, OWN_VALUE_MAX]);
            let found = all.quantile(0.5).unwrap();
            assert!((found - number).abs() <= number / 1_000.0 + 1e-6, "{found} for {number}");
        }
        let all = of(&[0.1, 0.2, 0.9]);
        assert_eq!((all.min, all.max, all.count), (0.1, 0.9, 3), "both ends are exact");
        assert_eq!((all.quantile(0.0), all.quantile(1.0)), (Some(0.1), Some(0.9)));
        assert!((all.mean().unwrap() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn threads_and_intervals_add_up() {
        let mut all = of(&[7.0; 10]);
        let mut other = OwnSeries::empty(0, OwnKind::Histogram);
        other.add(2.0);
        (other.no_number, other.example) = (3, Some("none".into()));
        all.add(&other);
        let mut twice = OwnValues::default();
        twice.add_values(&all);
        twice.add_values(&all);
        assert_eq!((twice.count, twice.sum, twice.min, twice.max), (22, 144.0, 2.0, 7.0));
        assert_eq!((twice.no_number, twice.example.as_deref()), (6, Some("none")));
        assert_eq!((twice.at_rank(2), twice.at_rank(3), twice.at_rank(23)), (Some(2.0), Some(7.0), None));
        other.clear();
        let mut nothing = OwnValues::default();
        nothing.add(&other);
        assert_eq!((nothing.count, nothing.mean(), nothing.quantile(0.5)), (0, None, None));
        assert!(other.values.is_some_and(|values| values.0.is_empty()));
    }

    #[test]
    fn a_counter_has_a_sum_and_no_distribution() {
        let mut series = OwnSeries::empty(3, OwnKind::Counter);
        [1.0, 2.5].into_iter().for_each(|number| series.add(number));
        let mut all = OwnValues::default();
        all.add(&series);
        assert_eq!((all.count, all.sum, all.quantile(0.5)), (2, 3.5, None));
    }

    #[test]
    fn what_is_no_number_is_not_taken() {
        assert!(OwnSeries::takes(0.0) && OwnSeries::takes(OWN_VALUE_MAX));
        assert!(![-0.1, 1.1e12, f64::NAN, f64::INFINITY].into_iter().any(OwnSeries::takes));
    }
}
