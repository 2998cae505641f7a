//! Rate and latency over time, as lines.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};
use tidemark_record::Live;
use tidemark_report::units;

use super::super::state::State;
use super::paint::{Paint, title};

/// Columns of the labels of the upright axis and of the frame.
const SCALE_COLUMNS: u16 = 10;
/// Dots that a column has side by side.
const DOTS: usize = 2;
/// Columns of a label of the upright axis.
const LABEL_COLUMNS: usize = 6;

/// Points of a line, seconds from the left edge against a value.
type Points = Vec<(f64, f64)>;

/// Requests a second: due, ended, failed.
pub fn draw_rate(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let (seconds, span) = state.shown(dots(area));
    let points = |of: fn(&Live) -> f64| seconds.clone().map(|(x, live)| (x, of(live))).collect::<Points>();
    let offered = points(|live| live.offered_per_s);
    let achieved = points(|live| live.achieved_per_s);
    let errors = points(|live| live.errors_per_s);
    let top = round_up(offered.iter().chain(&achieved).map(|point| point.1).fold(1.0, f64::max));
    let mut parts = vec![Span::styled(" rate ", paint.bold())];
    if let Some(last) = state.last() {
        let rate = |value: f64| format!("{}/s ", units::compact(value));
        parts.push(Span::styled(rate(last.achieved_per_s), paint.fg(Color::Cyan)));
        parts.push(Span::styled(format!("of {}offered ", rate(last.offered_per_s)), paint.quiet()));
    }
    let mut lines = vec![line(&offered, paint.quiet()), line(&achieved, paint.fg(Color::Cyan))];
    if errors.iter().any(|point| point.1 > 0.0) {
        lines.push(line(&errors, paint.fg(Color::Red)));
    }
    let labels = [0.0, top / 2.0, top].map(|value| label(&units::compact(value)));
    chart(frame, area, lines, title(parts, area), span, ([0.0, top], labels.to_vec()), paint);
}

/// Percentiles of the response time, and of few requests the longest, on a logarithmic axis.
pub fn draw_latency(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let (seconds, span) = state.shown(dots(area));
    let points = |of: fn(&Live) -> Option<u64>| -> Points {
        let log = |us: u64| (us.max(1) as f64).log10();
        seconds.clone().filter_map(|(x, live)| Some((x, log(of(live)?)))).collect()
    };
    let (p50, p90, tail) =
        (points(|live| live.p50_us), points(|live| live.p90_us), points(|live| live.tail_us().1));
    let all = || p50.iter().chain(&tail).map(|point| point.1);
    let low = all().fold(f64::INFINITY, f64::min).min(8.0).floor();
    let high = all().fold(f64::NEG_INFINITY, f64::max).ceil().max(low + 1.0);
    let (low, high) = if p50.is_empty() { (2.0, 5.0) } else { (low, high) };
    let last = state.last();
    let (tail_name, tail_us) = last.map_or(("p99", None), Live::tail_us);
    let percentiles = [
        ("p50", Color::Green, &p50, last.and_then(|live| live.p50_us)),
        ("p90", Color::Yellow, &p90, last.and_then(|live| live.p90_us)),
        (tail_name, Color::Magenta, &tail, tail_us),
    ];
    let mut parts = Vec::new();
    if last.is_some() {
        for (name, colour, _, last_us) in percentiles {
            let time = last_us.map_or_else(|| "-".into(), |us| units::duration(us as f64));
            parts.push(Span::styled(format!(" {name} {time} "), paint.fg(colour)));
        }
    }
    let name = Span::styled(" latency ", paint.bold());
    let width = |parts: &[Span<'_>]| parts.iter().map(Span::width).sum::<usize>();
    // the figures say what they are; the name is what can be done without
    if width(&parts) + name.width() <= usize::from(area.width.saturating_sub(2)) {
        parts.insert(0, name);
    }
    let lines = percentiles.iter().rev().map(|(_, colour, points, _)| line(points, paint.fg(*colour)));
    let decades = (low as i32..=high as i32).map(|decade| label(&power(decade))).collect();
    chart(frame, area, lines.collect(), title(parts, area), span, ([low, high], decades), paint);
}

fn dots(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(SCALE_COLUMNS)) * DOTS
}

/// `1ms` for 3: a power of ten in microseconds.
fn power(decade: i32) -> String {
    let (value, unit) = match decade {
        ..3 => (decade, "µs"),
        3..6 => (decade - 3, "ms"),
        _ => (decade - 6, "s"),
    };
    format!("{}{unit}", 10_u64.pow(value.clamp(0, 9) as u32))
}

fn label(text: &str) -> String {
    format!("{text:>LABEL_COLUMNS$}")
}

/// The next number that begins with 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 and goes on with zeros.
fn round_up(value: f64) -> f64 {
    const STEPS: [f64; 11] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    power * STEPS.into_iter().find(|step| step * power >= value).unwrap_or(10.0)
}

fn line<'a>(points: &'a [(f64, f64)], style: Style) -> Dataset<'a> {
    Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(style).data(points)
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: Vec<Dataset<'_>>,
    title: Line<'_>,
    span: usize,
    (bounds, labels): ([f64; 2], Vec<String>),
    paint: Paint,
) {
    let time = Axis::default().bounds([0.0, span.saturating_sub(1).max(1) as f64]).style(paint.quiet());
    let value = Axis::default().bounds(bounds).labels(labels).style(paint.quiet());
    let chart = Chart::new(lines).x_axis(time).y_axis(value).legend_position(None);
    frame.render_widget(chart.block(paint.block().title(title)), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers_just_above() {
        for (value, top) in
            [(0.0, 1.0), (1.0, 1.0), (1.1, 1.2), (999.0, 1_000.0), (2_001.0, 2_500.0), (84_000.0, 100_000.0)]
        {
            assert!((round_up(value) - top).abs() < 1e-6, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn powers_of_ten_are_times() {
        let all: Vec<_> = (0..8).map(power).collect();
        assert_eq!(all, ["1µs", "10µs", "100µs", "1ms", "10ms", "100ms", "1s", "10s"]);
    }
}
