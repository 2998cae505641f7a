//! Colours, and what is left without them.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

/// What the screen is painted with; without colours only shapes are left.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether colours are wanted.
    pub colour: bool,
}

impl Paint {
    pub(super) fn fg(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The frame around everything.
    pub(super) fn block<'a>(self) -> Block<'a> {
        let title = Style::new().remove_modifier(Modifier::DIM);
        Block::bordered().border_type(BorderType::Rounded).border_style(self.quiet()).title_style(title)
    }
}

/// As many parts of a title as there is room for between the corners of a frame. What is named first goes last.
pub(super) fn title<'a>(parts: Vec<Span<'a>>, area: Rect) -> Line<'a> {
    let room = usize::from(area.width.saturating_sub(2));
    let mut used = 0;
    let fits = |part: &Span<'_>| {
        used += part.width();
        used <= room
    };
    Line::from(parts.into_iter().take_while(fits).collect::<Vec<_>>())
}
