//! What drawings are made of.

use super::escape;

/// Width of a drawing, pixels.
pub(super) const WIDTH: f64 = 720.0;
/// Room beside what is drawn.
pub(super) const EDGE: f64 = 12.0;

/// A drawing of a height with its caption; `says` is for those who cannot see it.
pub(super) fn figure(class: &str, caption: &str, says: &str, height: f64, drawn: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!(
        "<figure{class}><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n\
         {drawn}</svg></figure>\n",
        escape(caption),
        escape(says)
    )
}

/// A line between two points, with what it says where the pointer rests on it.
pub(super) fn line(class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], says: &str) -> String {
    let title = title(says);
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\">{title}</line>\n"
    )
}

/// A dot, the same.
pub(super) fn dot(class: &str, [x, y]: [f64; 2], r: f64, says: &str) -> String {
    format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\">{}</circle>\n", title(says))
}

/// A line through points.
pub(super) fn way(points: impl IntoIterator<Item = [f64; 2]>, dashes: &str) -> String {
    let points: Vec<String> = points.into_iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    format!("<polyline class=\"way\"{dashes} points=\"{}\"/>\n", points.join(" "))
}

/// A text that begins at a point, or ends there.
pub(super) fn text(anchor: &str, [x, y]: [f64; 2], text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escape(text))
}

fn title(says: &str) -> String {
    if says.is_empty() { String::new() } else { format!("<title>{}</title>", escape(says)) }
}
