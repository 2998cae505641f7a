//! Rates, times, sizes, shares, counts: what is read and shown is read again as nearly the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::units::{
    Rate, Share, Size, Time, parse_count, parse_decimal, parse_duration, parse_rate, parse_share,
    parse_size,
};

/// Equal but for what showing three digits behind the point loses.
fn same(a: f64, b: f64, smallest: f64) {
    assert!((a - b).abs() <= 0.02 * a.abs() + smallest, "{a} and {b}");
}

fuzz_target!(|text: &str| {
    if let Ok(rate) = parse_rate(text) {
        assert!(rate.is_finite() && rate >= 0.0, "{rate}");
        same(rate, parse_rate(&Rate(rate).to_string()).expect("what is shown is read"), 1e-3);
    }
    if let Ok(time) = parse_duration(text) {
        let again = parse_duration(&Time(time).to_string()).expect("what is shown is read");
        same(time.as_secs_f64(), again.as_secs_f64(), 1e-9);
    }
    if let Ok(size) = parse_size(text) {
        let again = parse_size(&Size(size).to_string()).expect("what is shown is read");
        same(size as f64, again as f64, 1.0);
    }
    if let Ok(share) = parse_share(text) {
        assert!((0.0..=1.0).contains(&share), "{share}");
        same(share, parse_share(&Share(share).to_string()).expect("what is shown is read"), 1e-9);
    }
    let _ = parse_count(text);
    if let Ok(amount) = parse_decimal(text) {
        assert_eq!(parse_decimal(&amount.to_string()), Ok(amount));
    }
});
