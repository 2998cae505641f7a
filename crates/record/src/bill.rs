//! What a run costs: exact decimal amounts, by tier and together. Whoever reports a run makes a [`Bill`] of it and a price file.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Hours that are reckoned as a month.
pub const MONTH_HOURS: u128 = 730;
/// What is 1, in the unit in which amounts are counted.
const ONE: u128 = 1_000_000_000;
/// Decimals of an amount.
const DECIMALS: usize = 9;
/// Digits of a small amount that are shown.
const DIGITS: usize = 3;

/// An exact amount of money, or of watt-hours, with nine decimals. Text in JSON, so that no reader rounds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);

    /// A whole amount.
    pub const fn whole(amount: u64) -> Amount {
        Amount(amount as u128 * ONE)
    }

    /// In billionths.
    pub fn nano(self) -> u128 {
        self.0
    }

    /// This part of it, rounded to the nearest billionth, half up. None of nothing (`of` is 0); the largest amount where it
    /// would be larger still.
    pub fn part(self, part: u128, of: u128) -> Option<Amount> {
        let common = gcd(part, of);
        let (part, of) = (part.checked_div(common)?, of.checked_div(common).filter(|of| *of > 0)?);
        let common = gcd(self.0, of).max(1);
        let (value, of) = (self.0 / common, of / common);
        let product = value.checked_mul(part).and_then(|product| product.checked_add(of / 2));
        Some(Amount(product.map_or(u128::MAX, |product| product / of)))
    }

    /// For a person: at least two decimals, and at least three digits of a small amount; thousands are set apart.
    pub fn shown(self) -> String {
        let digits = self.0.checked_ilog10().map_or(0, |log| log as usize + 1);
        // 0.0042: the first digit is the third decimal
        let decimals = (DECIMALS + DIGITS).saturating_sub(digits).clamp(2, DECIMALS);
        let unit = 10_u128.pow((DECIMALS - decimals) as u32);
        let rounded = self.0.saturating_add(unit / 2) / unit * unit;
        let text = format!("{}", rounded / ONE);
        let mut whole = String::new();
        for (at, digit) in text.chars().enumerate() {
            if at > 0 && (text.len() - at) % 3 == 0 {
                whole.push(',');
            }
            whole.push(digit);
        }
        let fraction = format!("{:09}", rounded % ONE);
        let kept = fraction.trim_end_matches('0').len().max(2);
        format!("{whole}.{}", &fraction[..kept])
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Amount {
    /// With all of its decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / ONE, self.0 % ONE);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > DECIMALS {
            return Err(format!("\"{text}\" is not a number like 0.0416, with 9 decimals at most"));
        }
        let nano = format!("{whole}{fraction:0<DECIMALS$}").parse();
        nano.map(Amount).map_err(|_| format!("{text} is too large"))
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(amounts: I) -> Amount {
        Amount(amounts.fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An exact amount, as text.",
            "type": "string",
            "pattern": "^[0-9]+(\\.[0-9]{1,9})?$",
        })
    }
}

/// A price at the rate of the run. Each is rounded by itself, to a billionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// For a million good answers; null where there was none.
    pub per_million: Option<Amount>,
    /// For an hour.
    pub per_hour: Amount,
    /// For 24 hours.
    pub per_day: Amount,
    /// For 730 hours.
    pub per_month: Amount,
    /// For each customer in a month; absent where nobody says how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_customer_month: Option<Amount>,
}

impl Sum for Price {
    /// All of them together; a million, or a customer, only where each has a price for it.
    fn sum<I: Iterator<Item = Price>>(prices: I) -> Price {
        let prices: Vec<Price> = prices.collect();
        let all = |of: fn(&Price) -> Option<Amount>| {
            let amounts: Option<Vec<Amount>> = prices.iter().map(of).collect();
            amounts.filter(|amounts| !amounts.is_empty()).map(|amounts| amounts.into_iter().sum())
        };
        Price {
            per_million: all(|price| price.per_million),
            per_hour: prices.iter().map(|price| price.per_hour).sum(),
            per_day: prices.iter().map(|price| price.per_day).sum(),
            per_month: prices.iter().map(|price| price.per_month).sum(),
            per_customer_month: all(|price| price.per_customer_month),
        }
    }
}

/// What a tier is to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What was driven.
    System,
    /// Another service of the system.
    Service,
    /// What stands in front of a service's instances.
    Balancer,
    /// A store that the run started.
    Store,
    /// What was watched though the run did not start it.
    Watched,
    /// The load generator. It is no part of what the system costs.
    Driver,
}

/// What a tier used, and its price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierBill {
    /// The service, the store, `web-balancer`, `driver`.
    pub tier: String,
    /// What it is to the run.
    pub role: Role,
    /// Instances; each is reckoned on a machine of its own.
    pub instances: u64,
    /// CPU time of all of them in the measured window, seconds.
    pub cpu_s: f64,
    /// Cores that all of them used, mean.
    pub cores_used: f64,
    /// Highest resident memory of one of them, bytes; 0 where it is not known.
    pub rss_bytes_max: u64,
    /// Kind of machine; null where none is named for it.
    pub machine: Option<String>,
    /// Machines: one for each instance, more where one used more cores than a machine has. Null without a price.
    pub machines: Option<u64>,
    /// Whether less CPU was used than the clock tells of, 10 ms: `at_cpu` is the price of that, and the true one is less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_cpu_is_less: bool,
    /// Price of the cores that were used, as a share of the machine.
    pub at_cpu: Option<Price>,
    /// Price of whole machines.
    pub whole: Option<Price>,
}

/// Energy that the system used: watts from the price file for the CPU that was measured. `per_hour` and the others are
/// watt-hours there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Energy {
    /// Watt-hours of the cores that were used.
    pub at_cpu_wh: Price,
    /// The same with what the machines draw while idle; null where a machine's is not known.
    pub whole_wh: Option<Price>,
    /// What the first costs; null without a price for a kilowatt-hour.
    pub at_cpu: Option<Price>,
    /// What the second costs.
    pub whole: Option<Price>,
}

/// What the published experiment had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedBill {
    /// What ran, and where that is from.
    pub what: String,
    /// The year of its prices.
    pub year: u16,
    /// Its bill in US dollars of that year; null where none is known.
    pub usd: Option<Amount>,
    /// The same in today's, by the price file's `inflation`; null where that does not have the year.
    pub usd_today: Option<Amount>,
}

/// What a run costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bill {
    /// Of what money amounts are.
    pub currency: String,
    /// Where the prices are from.
    pub source: String,
    /// The day on which they were so.
    pub date: String,
    /// Why the figures are not those of a run that passed; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// Good answers that came in the measured window.
    pub good: u64,
    /// Requests that were due in it and had none.
    #[serde(default)]
    pub failed: u64,
    /// Length of that, seconds.
    pub measured_s: f64,
    /// Customers among whom the price is divided; null where nobody says.
    pub customers: Option<u64>,
    /// By tier: services with their balancers, stores, what was watched, the load generator.
    pub tiers: Vec<TierBill>,
    /// Of all tiers with a price but the load generator's: the cores that were used. Null where none has one.
    pub at_cpu: Option<Price>,
    /// The same of whole machines.
    pub whole: Option<Price>,
    /// Of whole machines that are reserved; null where a price is missing.
    pub reserved: Option<Price>,
    /// Of whole machines at spot prices; null where a price is missing.
    pub spot: Option<Price>,
    /// What is in none of these sums, and why, a sentence each; empty where nothing is left out.
    pub not_in_sums: Vec<String>,
    /// What is to be said beside.
    pub notes: Vec<String>,
    /// Energy; null where the price file has no watts for it.
    pub energy: Option<Energy>,
    /// What the published experiment had; absent where the scenario is of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedBill>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_shown_never_hides_a_cent() {
        for (exact, shown) in [
            ("0", "0.00"),
            ("0.0042", "0.0042"),
            ("0.000000001", "0.000000001"),
            ("0.00420555", "0.00421"),
            ("0.5", "0.50"),
            ("0.123456", "0.123"),
            ("0.9996", "1.00"),
            ("12.345", "12.35"),
            ("1234567.894", "1,234,567.89"),
            ("999.995", "1,000.00"),
        ] {
            assert_eq!(amount(exact).shown(), shown, "{exact}");
        }
    }

    #[test]
    fn parts_are_rounded_to_the_nearest_and_never_wrap() {
        assert_eq!(amount("1").part(1, 3), Some(amount("0.333333333")));
        assert_eq!(amount("1").part(2, 3), Some(amount("0.666666667")));
        assert_eq!(amount("0.000000001").part(1, 2), Some(amount("0.000000001")));
        assert_eq!(amount("5").part(0, 7), Some(amount("0")));
        assert_eq!(amount("0").part(3, 7), Some(amount("0")));
        assert_eq!(amount("5").part(1, 0), None);
        assert_eq!(amount("5").part(0, 0), None);
        assert_eq!(Amount(u128::MAX).part(7, 3), Some(Amount(u128::MAX)));
        assert_eq!(Amount(u128::MAX).part(u128::MAX, u128::MAX), Some(Amount(u128::MAX)));
    }

    #[test]
    fn text_and_amount_are_the_same() {
        for text in ["0", "0.1", "12.000000001", "340282366920938463463374607431"] {
            assert_eq!(amount(text).to_string(), text.trim_end_matches(".0"));
            let json = serde_json::to_string(&amount(text)).unwrap();
            assert_eq!(serde_json::from_str::<Amount>(&json).unwrap(), amount(text));
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1,5", "0.0000000001", "9".repeat(40).as_str()] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }
}
