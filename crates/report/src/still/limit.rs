//! A search for a limit on its page: the curves over the offered rate, every trial.

use std::fmt::Write;

use tidemark_limit::{Found, Point, Search, Trial};

use super::escape;
use super::svg::{self, EDGE, WIDTH};
use crate::blocks::Curve;
use crate::limit::{is_among, missed, rate};
use crate::units::{duration, more_than, percent, three_digits, time};

/// Height of a chart, pixels, and the room for its axes, whose text is larger on a narrow screen.
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 84.0;
const BOTTOM: f64 = 22.0;
/// Most trials in the table.
const TRIALS_MAX: usize = 1_000;
/// What the percentiles look like.
const WAYS: [(&str, &str); 4] = [("p50", ""), ("p90", "2 2"), ("p99", "6 3"), ("p99.9", "1 5")];

/// The charts, as far as there is a curve, and every trial.
pub(super) fn curve(out: &mut String, curve: &Curve) {
    if curve.found.curve.len() > 1 {
        charts(out, &curve.found);
    }
    trials(out, curve);
}

/// The charts beside each other in height, all over the same rates.
fn charts(out: &mut String, found: &Found) {
    let answered = |point: &Point| Some(point.achieved_per_s);
    chart(out, found, "answered each second", &[("", "", &answered)], false, &rate);
    let us = |value: Option<u64>| value.map(|us| us as f64);
    let of: [Value<'_>; 4] = [
        &|point: &Point| us(point.p50_us),
        &|point: &Point| us(point.p90_us),
        &|point: &Point| us(point.p99_us),
        &|point| us(point.p999_us),
    ];
    // what is known of no more than one trial makes no line, and has no place in the legend
    let has_line = |of: Value<'_>| found.curve.iter().filter_map(of).nth(1).is_some();
    let known = WAYS.iter().zip(of).filter(|(_, of)| has_line(*of));
    let ways: Vec<_> = known.map(|((name, dashes), of)| (*name, *dashes, of)).collect();
    chart(out, found, "response time (logarithmic)", &ways, true, &duration);
    if found.curve.iter().any(|point| point.cpu_cores.is_some_and(|cores| cores > 0.0)) {
        let cores = |point: &Point| point.cpu_cores;
        chart(out, found, "cores in use", &[("", "", &cores)], false, &three_digits);
    }
}

/// What is drawn of a point.
type Value<'a> = &'a dyn Fn(&Point) -> Option<f64>;

/// A name, the dashes of its line, and what is drawn of a point.
type Way<'a> = (&'a str, &'a str, Value<'a>);

fn chart(
    out: &mut String,
    found: &Found,
    title: &str,
    ways: &[Way<'_>],
    logarithmic: bool,
    text: &dyn Fn(f64) -> String,
) {
    let across = |point: &Point| if found.users { point.level } else { point.offered_per_s };
    let right = found.curve.iter().map(across).fold(0.0, f64::max);
    let values = || ways.iter().flat_map(|(.., of)| found.curve.iter().filter_map(*of));
    let top = values().fold(0.0, f64::max);
    let bottom = if logarithmic { values().filter(|value| *value > 0.0).fold(top, f64::min) } else { 0.0 };
    if right <= 0.0 || top <= bottom {
        return;
    }
    let x = |value: f64| LEFT + (value / right).clamp(0.0, 1.0) * (WIDTH - LEFT - EDGE);
    let part = |value: f64| match logarithmic {
        true => (value.max(bottom) / bottom).ln() / (top / bottom).ln(),
        false => (value - bottom) / (top - bottom),
    };
    let y = |value: f64| EDGE + (1.0 - part(value)) * (HEIGHT - EDGE);
    let right_edge = WIDTH - EDGE;
    let mut drawn = String::new();
    let (low, high, at) = match found.users {
        true => (found.low_level, found.high_level, found.level),
        false => (found.low_per_s, found.high_per_s, found.per_s),
    };
    if let Some((low, high)) = low.zip(high) {
        drawn += &format!(
            "<rect x=\"{:.1}\" y=\"{EDGE}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"var(--mark)\" fill-opacity=\".15\"/>\n",
            x(low),
            (x(high) - x(low)).max(1.0),
            HEIGHT - EDGE
        );
    }
    if let Some(at) = at.map(x) {
        drawn += &svg::line("cut", [at, EDGE], [at, HEIGHT], "");
    }
    let foot = HEIGHT + BOTTOM - 6.0;
    let most = if found.users { format!("{right:.0} users") } else { format!("{}/s offered", rate(right)) };
    drawn += &svg::line("axis", [LEFT, HEIGHT], [right_edge, HEIGHT], "");
    drawn += &svg::text("end", [LEFT - 6.0, EDGE + 8.0], &text(top));
    drawn += &svg::text("end", [LEFT - 6.0, HEIGHT], &text(bottom));
    drawn += &svg::text("start", [LEFT, foot], "0");
    drawn += &svg::text("end", [right_edge, foot], &most);
    for (_, dashes, of) in ways {
        let place = |point: &Point| Some(([x(across(point)), y(of(point)?)], point.holds));
        let mut places: Vec<([f64; 2], Option<bool>)> = found.curve.iter().filter_map(place).collect();
        // what was offered is not in the order of what was asked for
        places.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        drawn += &svg::way(places.iter().map(|(at, _)| *at), dashes);
        for (at, holds) in places {
            drawn += &svg::dot(if holds == Some(false) { "dot bad" } else { "dot" }, at, 2.5, "");
        }
    }
    // what each line is stands in a corner, as their ends lie close together
    let named = ways.iter().filter(|(name, ..)| !name.is_empty()).enumerate();
    for (row, (name, dashes, _)) in named {
        let (x, y) = (LEFT + 12.0, EDGE + 10.0 + 20.0 * row as f64);
        drawn += &svg::way([[x, y], [x + 24.0, y]], dashes);
        drawn += &svg::text("start", [x + 30.0, y + 4.0], name);
    }
    *out += &svg::figure("wide", title, title, HEIGHT + BOTTOM, &drawn);
}

/// Every trial in a table; columns that a narrow screen has no room for are of the class `more`.
fn trials(out: &mut String, Curve { search, found, links }: &Curve) {
    let first = if found.users { "users" } else { "asked for" };
    let _ = writeln!(
        out,
        "<div class=\"wide\"><table><tr><th>{first}</th><th>holds</th><th class=\"more\">offered</th><th>answered</th><th>p50</th><th>p99</th><th>failed</th>\
         <th class=\"more\">measured</th><th class=\"more\">began after</th></tr>"
    );
    let decided = search.decided();
    for (trial, link) in search.trials.iter().zip(links).take(TRIALS_MAX) {
        let figures = &trial.figures;
        let (class, sign, why) = worth(search, trial, &decided);
        let level = match found.users {
            true => format!("{:.0}", trial.ask.level),
            false => format!("{}/s", rate(trial.ask.level)),
        };
        let level = match link {
            Some(page) => format!("<a href=\"{}\">{level}</a>", escape(page)),
            None => level,
        };
        let _ = writeln!(
            out,
            "<tr><td>{level}</td><td class=\"{class}\">{sign}</td><td class=\"more\">{}/s</td><td>{}/s</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"more\">{}</td><td class=\"more\">{:.1}s</td></tr>",
            rate(figures.offered_per_s),
            rate(figures.achieved_per_s),
            time(figures.p50_us),
            time(figures.p99_us),
            percent(figures.failed_share),
            duration(trial.measured_s * 1e6),
            trial.began_s,
        );
        if let Some(why) = why {
            let _ = writeln!(
                out,
                "<tr class=\"why\"><td class=\"{class}\" colspan=\"9\"><div>{}</div></td></tr>",
                escape(&why)
            );
        }
    }
    out.push_str("</table></div>\n");
    if let Some(more) = more_than(search.trials.len(), TRIALS_MAX) {
        let _ = writeln!(out, "<p class=\"quiet\">{more} more trials are in --json</p>");
    }
}

/// What a trial is worth: the class of its cell, its sign, and why.
fn worth(search: &Search, trial: &Trial, decided: &[&Trial]) -> (&'static str, char, Option<String>) {
    use tidemark_limit::NotCounted::{Driver, Machine};
    match &trial.not_counted {
        Some(Driver(why) | Machine(why)) => ("quiet", '–', Some(format!("not counted: {why}"))),
        None if !is_among(decided, trial) => {
            ("quiet", '–', Some("neither holds nor breaks: too few requests to say".into()))
        }
        None if trial.holds() => ("good", '✓', None),
        None => {
            let missed = missed(search, trial);
            let mut told: Vec<String> = trial.failure.iter().cloned().collect();
            told.extend(missed.map(|(goal, seen)| format!("{} ({})", goal.text, seen.measured)));
            ("bad", '✗', Some(told.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tidemark_limit::Searches;

    use super::*;
    use crate::limit::tests::searches;
    use crate::still::limit_linked;

    fn page(searches: &Searches) -> String {
        crate::still::limit(searches, Path::new("runs/x"), &[])
    }

    #[test]
    fn it_has_a_dot_for_each_trial_and_no_markup_of_others() {
        let shown = page(&searches(None));
        assert!(shown.contains("<p class=\"lead\">holds 42,400/s (between 40,000 and 45,000)"), "{shown}");
        // throughput, two percentiles that are known, CPU
        assert_eq!(shown.matches("<circle").count(), 3 * 4);
        assert_eq!(shown.matches("<circle class=\"dot bad\"").count(), 4);
        assert_eq!(shown.matches("<rect").count(), 3);
        assert!(shown.contains("a &lt;note&gt;") && !shown.contains("71ms</td></td>"), "{shown}");
        assert!(shown.contains("mean &lt; 50ms (71ms&lt;/td&gt;)"), "{shown}");
    }

    #[test]
    fn on_a_narrow_screen_charts_shrink_and_the_table_has_fewer_columns() {
        let searches = searches(None);
        let shown = page(&searches);
        let rows = 1 + searches.searches[0].trials.len();
        assert_eq!(shown.matches(" class=\"more\">").count(), 3 * rows, "{shown}");
        assert!(shown.contains(".wide .more{display:none}") && !shown.contains("svg{min-width"), "{shown}");
    }

    #[test]
    fn only_what_is_drawn_is_in_the_legend() {
        let mut searches = searches(None);
        let legend = |searches: &Searches| {
            let shown = page(searches);
            let is_there = |name: &&str| shown.contains(&format!(">{name}</text>"));
            WAYS.iter().map(|(name, _)| *name).filter(is_there).collect::<Vec<&str>>()
        };
        assert_eq!(legend(&searches), ["p50", "p99"]);
        searches.searches[0].trials[0].figures.p999_us = Some(7_000);
        assert_eq!(legend(&searches), ["p50", "p99"], "one point is no line");
        searches.searches[0].trials[1].figures.p999_us = Some(9_000);
        assert_eq!(legend(&searches), ["p50", "p99", "p99.9"]);
    }

    #[test]
    fn a_trial_that_says_nothing_has_a_dash() {
        let mut searches = searches(None);
        searches.searches[0].trials[2].seen[0].undecided = true;
        let shown = page(&searches);
        assert!(shown.contains("–</td>") && shown.contains("neither holds nor breaks"), "{shown}");
        assert!(!shown.contains("<circle class=\"dot bad\""), "{shown}");
    }

    #[test]
    fn of_nothing_there_is_a_page() {
        let mut none = searches(None);
        none.searches[0].trials.clear();
        none.searches[0].ended = None;
        assert!(page(&none).contains("no result yet"));
    }

    #[test]
    fn trials_are_links_where_they_have_a_page_and_what_goes_on_is_not_stopped() {
        let mut searches = searches(None);
        searches.stopped = Some("by <me>".into());
        let link = |trial: &Trial| (trial.ask.level > 100.0).then(|| "\"><b>".to_owned());
        let shown = limit_linked(&searches, Path::new("runs/x"), true, &link);
        assert_eq!(shown.matches("<a href=\"&quot;&gt;&lt;b&gt;\">").count(), 2, "{shown}");
        assert!(shown.contains("running: ") && !shown.contains("stopped early"), "{shown}");
        let shown = page(&searches);
        assert!(!shown.contains("<a ") && !shown.contains("running: "), "{shown}");
        assert!(shown.contains("stopped early: by &lt;me&gt;"), "{shown}");
    }
}
