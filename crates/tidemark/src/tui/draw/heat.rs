//! The heat strip: a column for each second, a row for each class of response times.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use tidemark_record::{Live, SPREAD_CLASSES};
use tidemark_report::units;

use super::super::state::{State, length};
use super::paint::Paint;

/// Columns of the response times at the left.
const SCALE_COLUMNS: u16 = 8;
/// Least columns between two times of the axis below.
const TIME_COLUMNS: f64 = 9.0;
/// Seconds that may lie between two times of the axis below.
const TIME_STEPS_S: [u64; 11] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800];
/// From which share of a second's requests on a cell is as hot as its place here: rare ones are seen, for the slow
/// ones are what matters.
const HEAT_FROM: [f64; 8] = [0.0, 0.001, 0.004, 0.015, 0.05, 0.15, 0.3, 0.6];
/// What that looks like: colours of the 256, from dark to bright …
const COLOURS: [u8; 8] = [17, 54, 90, 126, 162, 203, 214, 227];
/// … or shapes, where no colours are wanted.
const SHAPES: [&str; 8] = ["·", "░", "░", "▒", "▒", "▓", "▓", "█"];

/// Draws it. The darker, the fewer; all requests of a second together are one column.
pub fn draw_heat(frame: &mut Frame<'_>, area: Rect, state: &State, paint: Paint) {
    let block = paint
        .block()
        .title(Span::styled(" response times ", paint.bold()))
        .title_top(legend(paint).right_aligned());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let columns = usize::from(inside.width.saturating_sub(SCALE_COLUMNS));
    if inside.height < 2 || columns == 0 {
        return;
    }
    let (seconds, span) = state.shown(columns);
    let seconds: Vec<&Live> = seconds.map(|(_, live)| live).collect();
    let used = |class: &usize| seconds.iter().any(|live| live.spread[*class] > 0);
    let classes = 0..SPREAD_CLASSES;
    let (Some(low), Some(high)) = (classes.clone().find(used), classes.rev().find(used)) else { return };
    let grid = Grid::new((low, high), usize::from(inside.height - 1), paint);
    let cells = inside.x + SCALE_COLUMNS;
    for row in 0..grid.rows {
        let y = inside.bottom() - 2 - row as u16;
        let scale = format!("{:>7} ", units::duration((1_u64 << grid.first(row)) as f64));
        frame.buffer_mut().set_string(inside.x, y, scale, paint.quiet());
        for x in 0..columns {
            // a second is several columns wide where there is room
            let Some(live) = seconds.get(x * span / columns) else { break };
            cell(frame.buffer_mut(), cells + x as u16, y, grid.heat(live, row), paint);
        }
    }
    let axis = Rect { x: cells, y: inside.bottom() - 1, width: columns as u16, height: 1 };
    draw_times(frame.buffer_mut(), axis, &seconds, span, paint);
}

/// When it was, below.
fn draw_times(buffer: &mut Buffer, axis: Rect, seconds: &[&Live], span: usize, paint: Paint) {
    let columns = f64::from(axis.width) / span.max(1) as f64;
    let wide = |step: &u64| *step as f64 * columns >= TIME_COLUMNS;
    let step = TIME_STEPS_S.into_iter().find(wide).unwrap_or(3_600);
    for (place, live) in seconds.iter().enumerate() {
        // a second is named by its begin
        let begin_s = (live.at_s.round() as u64).saturating_sub(1);
        let text = length(std::time::Duration::from_secs(begin_s));
        let x = (place as f64 * columns).ceil() as u16;
        if begin_s.is_multiple_of(step) && usize::from(axis.width.saturating_sub(x)) >= text.chars().count() {
            buffer.set_string(axis.x + x, axis.y, text, paint.quiet());
        }
    }
}

/// Which classes a row shows. With colours a row can show two bands of them, one above the other.
struct Grid {
    low: usize,
    per_band: usize,
    bands: usize,
    rows: usize,
}

impl Grid {
    /// For the classes from `low` to `high`, on so many rows at most.
    fn new((low, high): (usize, usize), rows_max: usize, paint: Paint) -> Grid {
        let classes = high - low + 1;
        let bands = if paint.colour && classes > rows_max { 2 } else { 1 };
        let per_band = classes.div_ceil(rows_max * bands);
        Grid { low, per_band, bands, rows: classes.div_ceil(per_band * bands) }
    }

    /// The fastest class of a row.
    fn first(&self, row: usize) -> usize {
        self.low + row * self.bands * self.per_band
    }

    /// How hot the lower and the upper half of a cell are.
    fn heat(&self, live: &Live, row: usize) -> [Option<usize>; 2] {
        let all: u64 = live.spread.iter().sum();
        let band = |band: usize| {
            let first = self.first(row) + band * self.per_band;
            heat(live.spread.iter().skip(first).take(self.per_band).sum(), all)
        };
        let lower = band(0);
        [lower, if self.bands == 2 { band(1) } else { lower }]
    }
}

/// How hot so many of all are, as an index; none where there is nothing.
fn heat(here: u64, all: u64) -> Option<usize> {
    let share = here as f64 / all.max(1) as f64;
    (here > 0).then(|| HEAT_FROM.iter().rposition(|from| share >= *from).unwrap_or(0))
}

fn cell(buffer: &mut Buffer, x: u16, y: u16, halves: [Option<usize>; 2], paint: Paint) {
    let colour = |heat: usize| Color::Indexed(COLOURS[heat]);
    let (symbol, style) = match halves {
        [None, None] => return,
        [Some(heat), _] if !paint.colour => (SHAPES[heat], Style::new()),
        [lower, upper] if lower == upper => ("█", Style::new().fg(colour(lower.unwrap_or(0)))),
        [Some(lower), Some(upper)] => ("▄", Style::new().fg(colour(lower)).bg(colour(upper))),
        [Some(lower), None] => ("▄", Style::new().fg(colour(lower))),
        [None, Some(upper)] => ("▀", Style::new().fg(colour(upper))),
    };
    buffer.set_string(x, y, symbol, style);
}

fn legend(paint: Paint) -> Line<'static> {
    let mut parts = vec![Span::styled(" few ", paint.quiet())];
    for heat in 0..HEAT_FROM.len() {
        let symbol = if paint.colour { "█" } else { SHAPES[heat] };
        if paint.colour || heat == 0 || SHAPES[heat] != SHAPES[heat - 1] {
            parts.push(Span::styled(symbol, paint.fg(Color::Indexed(COLOURS[heat]))));
        }
    }
    parts.push(Span::styled(" many ", paint.quiet()));
    Line::from(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_million_is_seen_and_nothing_is_not() {
        assert_eq!((heat(0, 10), heat(0, 0)), (None, None));
        assert_eq!(heat(1, 1_000_000), Some(0));
        assert_eq!((heat(10, 100), heat(59, 100), heat(100, 100)), (Some(4), Some(6), Some(7)));
    }

    #[test]
    fn every_class_has_a_place() {
        for (colour, rows_max, rows, per_band, bands) in [
            (false, 3, 3, 4, 1),
            (true, 3, 3, 2, 2),
            (true, 12, 11, 1, 1),
            (true, 6, 6, 1, 2),
            (true, 1, 1, 6, 2),
        ] {
            let grid = Grid::new((9, 19), rows_max, Paint { colour });
            assert_eq!((grid.rows, grid.per_band, grid.bands), (rows, per_band, bands));
            assert!(grid.first(grid.rows - 1) <= 19 && grid.first(grid.rows) > 19);
        }
    }

    #[test]
    fn two_bands_of_a_row_are_two_colours() {
        let mut live = Live::default();
        (live.spread[9], live.spread[10]) = (99, 1);
        let grid = Grid::new((9, 10), 1, Paint { colour: true });
        assert_eq!(grid.heat(&live, 0), [Some(7), Some(2)]);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 1, 1));
        cell(&mut buffer, 0, 0, grid.heat(&live, 0), Paint { colour: true });
        let drawn = &buffer[(0, 0)];
        assert_eq!((drawn.fg, drawn.bg), (Color::Indexed(COLOURS[7]), Color::Indexed(COLOURS[2])));
    }
}
