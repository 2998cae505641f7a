//! Figures for a person.

use tidemark_scenario::plan::Metric;

/// What is not reached says why.
pub(crate) fn text_or_not_reached(metric: Metric, value: f64, failed_share: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean if value.is_infinite() => {
            format!("not reached: {} had no good answer", text(Metric::ErrorShare, failed_share))
        }
        _ => text(metric, value),
    }
}

/// A value that is only a bound: nobody knows how little, or how much, it would have been.
pub(crate) fn bound_text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean if value == 0.0 => "maybe less".into(),
        Metric::Rate | Metric::AchievedShare if value.is_infinite() => "maybe more".into(),
        Metric::Percentile(_) | Metric::Mean if value.is_infinite() => "not reached".into(),
        _ => text(metric, value),
    }
}

/// A measured value for a person, in the form in which bounds are written.
pub(crate) fn text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean => duration_text(value),
        Metric::ErrorShare | Metric::LostShare => format!("{}%", significant(value * 100.0)),
        Metric::AchievedShare => format!("{}% of offered", significant(value * 100.0)),
        Metric::Rate => format!("{}/s", significant(value)),
        Metric::Errors | Metric::Dropped | Metric::Lost | Metric::Duplicated => format!("{value:.0}"),
        Metric::Custom(_) => significant(value),
    }
}

/// Microseconds for a person: `870µs`, `71.2ms`, `1.25s`.
pub fn duration_text(us: f64) -> String {
    // the unit is chosen after rounding, so that 999.96 ms is 1s and not 1000ms
    match us {
        us if us < 999.5 => format!("{}µs", significant(us)),
        us if us < 999_500.0 => format!("{}ms", significant(us / 1e3)),
        us => format!("{}s", significant(us / 1e6)),
    }
}

/// Three significant digits, without trailing zeros; whole numbers from 100 up.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".into();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
