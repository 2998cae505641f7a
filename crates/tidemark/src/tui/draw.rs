//! The screen, from what the view knows.

mod charts;
mod heat;
mod paint;

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph, Wrap};
use tidemark_record::{DRIVER, Live, MACHINE, Outcome, SYSTEM};
use tidemark_report::text::{clean, wrap};
use tidemark_report::units;

use super::state::State;
pub use paint::Paint;

/// Least size that is laid out for.
const COLUMNS_MIN: u16 = 60;
const ROWS_MIN: u16 = 20;
/// Rows from which on there is room for a machine's CPU and a row of air.
const ROWS_TALL: u16 = 30;
/// Columns of the panels below; the events have the rest.
const ERROR_COLUMNS: u16 = 24;
const NOW_COLUMNS: u16 = 25;
/// Columns of an event's time.
const TIME_COLUMNS: u16 = 6;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, now: Instant, paint: Paint) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        let text = format!("This window is too small: {COLUMNS_MIN}x{ROWS_MIN} is needed. q stops the run.");
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let tall = u16::from(area.height >= ROWS_TALL);
    let [head, gauge, _, charts, heat, panels, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(tall),
        Constraint::Fill(2 + tall),
        Constraint::Fill(2),
        Constraint::Length(8 + tall),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, state, now, paint);
    draw_gauge(frame, gauge, state, now, paint);
    let [rate, latency] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(charts);
    charts::draw_rate(frame, rate, state, paint);
    charts::draw_latency(frame, latency, state, paint);
    heat::draw_heat(frame, heat, state, paint);
    let thirds = [Constraint::Length(ERROR_COLUMNS), Constraint::Length(NOW_COLUMNS), Constraint::Fill(1)];
    let [errors, load, events] = Layout::horizontal(thirds).areas(panels);
    draw_errors(frame, errors, state, paint);
    draw_now(frame, load, state, paint);
    draw_events(frame, events, state, paint);
    draw_keys(frame, keys, state, paint);
}

/// What runs at the left; what it does and for how long yet at the right, which is never cut.
fn draw_head(frame: &mut Frame<'_>, area: Rect, state: &State, now: Instant, paint: Paint) {
    let phase = match state.level.is_empty() || state.stopping {
        true => clean(&state.phase),
        false => format!("{}: {}", clean(&state.phase), clean(&state.level)),
    };
    let right = match state.left(now) {
        Some(left) => format!(" {phase} · {left} "),
        None => format!(" {phase} "),
    };
    let mut left = vec![Span::styled(format!(" {}", clean(&state.title)), paint.bold())];
    let place = state.system.split_once("://").map_or(state.system.as_str(), |(_, place)| place);
    if !state.title.contains(place) {
        left.push(Span::styled(format!("  {}", clean(&state.system)), paint.quiet()));
    }
    let width = u16::try_from(right.chars().count()).unwrap_or(u16::MAX).min(area.width);
    let [names, times] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area);
    frame.render_widget(Line::from(left), names);
    let colour = if state.stopping { Color::Yellow } else { Color::Cyan };
    frame.render_widget(Line::styled(right, paint.fg(colour)), times);
}

fn draw_gauge(frame: &mut Frame<'_>, area: Rect, state: &State, now: Instant, paint: Paint) {
    let [_, bar, _, number] = Layout::horizontal([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(5),
    ])
    .areas(area);
    let share = state.share(now);
    let gauge = LineGauge::default()
        .ratio(share)
        .label("")
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(paint.fg(Color::Cyan))
        .unfilled_style(paint.quiet());
    frame.render_widget(gauge, bar);
    frame.render_widget(Line::styled(format!("{:>3.0}%", share * 100.0), paint.quiet()), number);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let says = match state.stopping {
        true => " stop at once, without a report",
        false => " stop and report; twice: stop at once",
    };
    let line = Line::from(vec![
        Span::styled(" q", paint.bold()),
        Span::styled(" or ", paint.quiet()),
        Span::styled("Ctrl-C", paint.bold()),
        Span::styled(says, paint.quiet()),
    ]);
    frame.render_widget(line, area);
}

fn panel(frame: &mut Frame<'_>, area: Rect, title: Line<'_>, lines: Vec<Line<'_>>, paint: Paint) {
    frame.render_widget(Paragraph::new(lines).block(paint.block().title(title)), area);
}

/// A name and its figure, which ends where the panel's frame is near.
fn pair<'a>(area: Rect, name: &str, value: String, style: Style) -> Line<'a> {
    let room = usize::from(area.width.saturating_sub(4)).saturating_sub(name.chars().count());
    Line::from(vec![Span::raw(format!(" {name}")), Span::styled(format!("{value:>room$}"), style)])
}

fn draw_errors(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let last = state.last();
    let counts = last.map(|live| live.by_outcome).unwrap_or_default();
    let mut kinds: Vec<(Outcome, u64)> = Outcome::ALL
        .into_iter()
        .filter(|outcome| outcome.is_error())
        .map(|outcome| (outcome, counts[outcome as usize]))
        .filter(|(_, count)| *count > 0)
        .collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut title = vec![Span::styled(" errors ", paint.bold())];
    let mut lines: Vec<Line<'_>> = kinds
        .iter()
        .map(|(kind, count)| pair(area, kind.name(), units::compact(*count as f64), paint.fg(Color::Red)))
        .collect();
    if let Some(live) = last.filter(|live| live.errors > 0) {
        let share = live.errors as f64 / live.requests.max(1) as f64;
        title.push(Span::styled(format!("{} ", units::percent(share)), paint.fg(Color::Red)));
    } else {
        lines.push(Line::styled(" none", paint.fg(Color::Green)));
    }
    panel(frame, area, Line::from(title), lines, paint);
}

fn draw_now(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let last = state.last();
    let count =
        |of: fn(&Live) -> u64| last.map_or_else(|| "-".into(), |live| units::compact(of(live) as f64));
    let cores = |process: &str| state.cpu(process).map_or_else(|| "-".into(), |cpu| format!("{cpu:.2}"));
    let warn = |wrong: bool| if wrong { paint.fg(Color::Red) } else { Style::new() };
    let plain = Style::new();
    let mut lines = vec![
        pair(area, "in flight", count(|live| live.in_flight), plain),
        pair(area, "waiting", count(|live| live.waiting), plain),
        pair(area, "dropped", count(|live| live.dropped), warn(last.is_some_and(|live| live.dropped > 0))),
        pair(area, "connections", count(|live| live.connections), plain),
        pair(area, "CPU of driver", cores(DRIVER), plain),
    ];
    // what is only known by its URL is not watched
    match state.cpu(SYSTEM) {
        None if state.cpu(DRIVER).is_some() => {
            lines.push(pair(area, "CPU of machine", cores(MACHINE), plain))
        }
        _ => {
            lines.insert(4, pair(area, "CPU of system", cores(SYSTEM), plain));
            lines.push(pair(area, "CPU of machine", cores(MACHINE), plain));
        }
    }
    panel(frame, area, Line::styled(" now ", paint.bold()), lines, paint);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let rows = usize::from(area.height.saturating_sub(2));
    let room = usize::from(area.width.saturating_sub(2 + TIME_COLUMNS)).max(1);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (at_s, text) in &state.events {
        let mut at = at_s.map_or_else(String::new, |at_s| format!("{at_s:.0}s"));
        for part in wrap(&clean(text), room) {
            let time = format!("{:>1$} ", std::mem::take(&mut at), usize::from(TIME_COLUMNS) - 1);
            lines.push(Line::from(vec![Span::styled(time, paint.quiet()), Span::raw(part)]));
        }
    }
    // the last ones are what matters
    lines.drain(..lines.len().saturating_sub(rows));
    panel(frame, area, Line::styled(" events ", paint.bold()), lines, paint);
}
