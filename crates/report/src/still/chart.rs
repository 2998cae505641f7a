//! Lines over time.

use crate::blocks::Chart;
use crate::jmeter::Series;
use crate::units::compact;

use super::escape;
use super::svg::{self, EDGE, WIDTH};

const HEIGHT: f64 = 220.0;
/// Room below the lines for the times, and left of them for the values.
const FOOT: f64 = 20.0;
const MARGIN: f64 = 56.0;
/// How much of the height the largest value has.
const FILLED: f64 = 0.9;
/// What is greater than a chart's most leaves it: a line goes up to this many times as much, which is outside.
const BEYOND: f64 = 2.0;
/// Times that are written below the lines.
const TIMES: usize = 9;
/// Most points of a line: more than pixels show nothing more. Of those that share one it is the mean.
const POINTS_MAX: usize = 720;

/// Draws a chart, with the names of its lines below it.
pub(super) fn chart(out: &mut String, chart: &Chart) {
    let lines: Vec<Vec<f64>> = chart.lines.iter().map(|line| thinned(&line.values)).collect();
    let largest = lines.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let most = chart.most.unwrap_or(largest / FILLED).max(f64::MIN_POSITIVE);
    let floor = HEIGHT - FOOT;
    let y = |value: f64| floor - (floor - EDGE) * (value / most).min(BEYOND);
    let x = |at: usize, of: usize| MARGIN + (WIDTH - MARGIN - EDGE) * at as f64 / (of.max(2) - 1) as f64;
    let mut drawn = String::new();
    for part in 0..=4 {
        let value = most * f64::from(part) / 4.0;
        drawn += &svg::line("axis", [MARGIN, y(value)], [WIDTH - EDGE, y(value)], "");
        drawn += &svg::text("end", [MARGIN - 4.0, y(value) + 4.0], &compact((value * 10.0).round() / 10.0));
    }
    drawn += &times(chart, &x);
    let several = lines.len() > 1;
    for (number, (values, line)) in lines.iter().zip(&chart.lines).enumerate() {
        let points = values.iter().enumerate().map(|(at, value)| [x(at, values.len()), y(*value)]);
        let way = svg::way(points, "");
        drawn += &format!(
            "<g{}><title>{}</title>{way}</g>\n",
            colour("stroke", number, several),
            escape(&line.name)
        );
    }
    let names = chart.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ");
    *out += &svg::figure("lines", &chart.caption, &format!("{}: {names}", chart.caption), HEIGHT, &drawn);
    if several {
        let name = |(number, line): (usize, &Series)| {
            format!("<span{}>■</span> {}", colour("color", number, true), escape(&line.name))
        };
        let names: Vec<String> = chart.lines.iter().enumerate().map(name).collect();
        *out += &format!("<p class=\"quiet\">{}</p>\n", names.join(" "));
    }
}

/// The times of the longest line, a few of them.
fn times(chart: &Chart, x: &impl Fn(usize, usize) -> f64) -> String {
    let Some(longest) = chart.lines.iter().max_by_key(|line| line.at.len()) else { return String::new() };
    let last = longest.at.len().saturating_sub(1);
    let step = last.div_ceil(TIMES - 1).max(1);
    let text = |at: usize| {
        let anchor = if at == 0 {
            "start"
        } else if at == last {
            "end"
        } else {
            "middle"
        };
        // the time of the day is enough
        let time = longest.at[at].rsplit(' ').next().unwrap_or_default();
        svg::text(anchor, [x(at, last + 1), HEIGHT - 4.0], time)
    };
    (0..=last).step_by(step).map(text).collect()
}

/// A colour of its own for each line.
fn colour(what: &str, number: usize, several: bool) -> String {
    if several { format!(" style=\"{what}:hsl({} 65% 50%)\"", number * 137 % 360) } else { String::new() }
}

/// No more points than are seen.
fn thinned(values: &[f64]) -> Vec<f64> {
    let step = values.len().div_ceil(POINTS_MAX).max(1);
    values.chunks(step).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
}
