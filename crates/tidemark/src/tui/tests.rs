//! Screens drawn into memory.

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;
use tidemark_lab::Progress;
use tidemark_record::{Live, Sample};

use super::draw::{Paint, draw};
use super::screen::is_stop;
use super::state::{SECONDS_MAX, State};

fn second(at: u64) -> Live {
    let mut live = Live {
        at_s: at as f64,
        in_window: at > 10,
        offered_per_s: 2_000.0,
        achieved_per_s: if at == 25 { 400.0 } else { 2_000.0 - at as f64 },
        errors_per_s: if at >= 25 { 12.0 } else { 0.0 },
        p50_us: Some(740),
        p90_us: Some(1_900),
        p99_us: Some(if at == 25 { 812_000 } else { 8_400 }),
        in_flight: 17,
        waiting: 3,
        connections: 100,
        requests: at * 2_000,
        errors: 60,
        dropped: 2,
        by_outcome: [at * 2_000, 12, 0, 48, 0, 0, 0, 0, 0],
        ..Live::default()
    };
    (live.spread[9], live.spread[10], live.spread[13]) = (1_500, 400, 15);
    live.spread[19] = u64::from(at == 25) * 40;
    live
}

fn sample(process: &str, cpu_share: f64) -> Sample {
    Sample { process: process.into(), cpu_share, ..Sample::default() }
}

/// Half a minute into a run of forty seconds.
fn running(now: Instant) -> State {
    let begun = now - Duration::from_secs(30);
    let mut state = State::new("airline".into(), None);
    state.take(Progress::Starting { system: "airline\u{1b}[2J".into() }, begun - Duration::from_secs(2));
    let hold =
        Progress::Phase { name: "hold".into(), level: "2000/s".into(), duration: Duration::from_secs(40) };
    state.take(hold, begun);
    let samples = vec![sample("system", 1.254), sample("driver", 0.5), sample("machine", 1.9)];
    state.take(Progress::Look { samples }, now);
    for at in 1..=30 {
        let left = Duration::from_secs(40 - at);
        let live = Box::new(second(at));
        state.take(Progress::Second { phase: "hold".into(), left, live }, begun + Duration::from_secs(at));
    }
    state
}

fn drawn(state: &State, now: Instant, (width, height): (u16, u16), colour: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, now, Paint { colour })).unwrap();
    terminal.backend().buffer().clone()
}

/// The screen as lines of text, without colours.
fn screen(state: &State, now: Instant, (width, height): (u16, u16)) -> String {
    let buffer = drawn(state, now, (width, height), false);
    let line = |y: u16| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

#[test]
fn a_run_on_the_usual_terminal() {
    let now = Instant::now();
    insta::assert_snapshot!(screen(&running(now), now, (80, 24)));
}

#[test]
fn a_run_on_a_larger_one() {
    let now = Instant::now();
    insta::assert_snapshot!(screen(&running(now), now, (120, 40)));
}

#[test]
fn a_run_on_a_large_one() {
    let now = Instant::now();
    insta::assert_snapshot!(screen(&running(now), now, (200, 50)));
}

#[test]
fn a_number_of_requests_has_no_time_left() {
    let now = Instant::now();
    let mut state = running(now);
    state.goal = Some(80_000);
    let text = screen(&state, now, (80, 24));
    assert!(text.contains("· 60.0k of 80.0k requests") && text.contains(" 75%"), "{text}");
}

#[test]
fn the_percentiles_are_whole_in_every_width() {
    let now = Instant::now();
    for width in [80, 90, 120, 200] {
        let text = screen(&running(now), now, (width, 24));
        assert!(text.contains(" p50 740µs  p90 1.90ms  p99 8.40ms "), "{width}: {text}");
    }
}

#[test]
fn without_colours_there_is_none_and_the_shapes_differ() {
    let now = Instant::now();
    let plain = |colour| {
        let buffer = drawn(&running(now), now, (80, 24), colour);
        buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    };
    assert!(plain(false) && !plain(true));
    let text = screen(&running(now), now, (80, 24));
    assert!(["░", "▓", "█"].iter().all(|shape| text.contains(shape)), "{text}");
}

#[test]
fn before_anything_happened() {
    let now = Instant::now();
    insta::assert_snapshot!(screen(&State::new("airline".into(), None), now, (80, 24)));
}

#[test]
fn a_run_that_is_cut_short() {
    let now = Instant::now();
    let mut state = running(now);
    state
        .take(Progress::CutShort { reason: "errors = 0 can no longer be met: errors so far: 1".into() }, now);
    let text = screen(&state, now, (100, 30));
    assert!(text.contains("stopping") && text.contains("can no longer be met"), "{text}");
    assert!(text.contains("stop at once, without a report"), "{text}");
    assert!(!text.contains(" left"), "{text}");
}

#[test]
fn every_size_can_be_drawn() {
    let now = Instant::now();
    let state = running(now);
    for (width, height) in [(1, 1), (10, 5), (59, 24), (80, 19)] {
        let text = screen(&state, now, (width, height));
        assert!(width < 59 || text.contains("too small"), "{text}");
    }
    for size in [(60, 20), (61, 21), (80, 60), (300, 20), (300, 100)] {
        let text = screen(&state, now, size);
        assert!(text.contains("hold: 2000/s · 10s left"), "{size:?}: {text}");
    }
}

#[test]
fn what_systems_are_called_does_not_steer_the_terminal() {
    let now = Instant::now();
    assert!(!screen(&running(now), now, (80, 24)).contains('\u{1b}'));
}

#[test]
fn what_is_kept_is_bounded() {
    let now = Instant::now();
    let mut state = State::new("x".into(), None);
    for at in 0..2 * SECONDS_MAX as u64 {
        let live = Box::new(second(at + 1));
        state.take(Progress::Second { phase: "hold".into(), left: Duration::ZERO, live }, now);
        state.take(Progress::Preparing, now);
    }
    assert_eq!(state.seconds.len(), SECONDS_MAX);
    assert_eq!(state.last().unwrap().at_s, 2.0 * SECONDS_MAX as f64);
    assert!(state.events.len() <= SECONDS_MAX);
    screen(&state, now, (80, 24));
}

#[test]
fn keys() {
    assert!(is_stop(KeyCode::Char('q'), false) && is_stop(KeyCode::Char('c'), true));
    assert!(
        !is_stop(KeyCode::Char('c'), false)
            && !is_stop(KeyCode::Char('x'), false)
            && !is_stop(KeyCode::Esc, false)
    );
}
