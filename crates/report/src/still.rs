//! Pages without a script, one file each: of a comparison, with every round, of the history of a folder, of a search for a
//! limit, of what JMeter wrote.

mod chart;
mod limit;
mod svg;

use std::path::Path;

use tidemark_limit::Searches;
use tidemark_record::summary::Status;

use crate::blocks::{self, Bar, Block, Cell, Level, Link, Table, Tier, value, word};
use crate::comparison::{Claim, Claims, change, range, title};
use crate::cost::NamedBill;
use crate::history::{History, Line, Trend};
use crate::jmeter::Figures;
use crate::plan::Planned;
use crate::reproduction::Reproduction;
use crate::text::steers;
use crate::units::{count, more_than, percent};
use svg::{EDGE, WIDTH};

/// Height of a figure's rounds.
const ROW: f64 = 36.0;
/// Height of a figure over time.
const TREND: f64 = 96.0;
/// The least change that reaches the edge.
const LEAST: f64 = 1.05;
/// Most rows of a table.
const ROWS_MAX: usize = 400;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--quiet:#626a73;--line:#d5dae0;--bad:#b42318;--good:#0b7a3b;--warning:#8a5a00;--mark:#2457c5;--paper:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--quiet:#9aa3ad;--line:#3a414a;--bad:#ff8a7a;--good:#5bd08d;--warning:#e0b050;--mark:#86a9ff;--paper:#15181c}}
body{margin:2rem auto;max-width:58rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.1rem}details{margin-top:1rem}h2{font-size:1rem;margin-top:2rem}.lead{font-size:1.15rem;font-weight:600}.quiet,figcaption{color:var(--quiet)}
.bad{color:var(--bad)}.good{color:var(--good)}.warning{color:var(--warning)}table{border-collapse:collapse;width:100%}td,th{padding:.2rem .5rem;text-align:right;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{text-align:left}.why td{text-align:left;border-top:0}.why div{position:sticky;left:.5rem;width:fit-content;max-width:min(56rem,calc(100vw - 3.5rem));overflow-wrap:anywhere}figure{margin:1rem 0}svg{display:block;width:100%;height:auto}
.bars td{width:6rem;white-space:nowrap}.bars td:nth-child(2){width:auto}.bars div{height:.7rem;min-width:1px;background:var(--mark)}.lines .way{stroke:inherit}.lines g{stroke:var(--mark)}.lines g:hover{stroke-width:3}
.tiers{display:flex;flex-wrap:wrap;align-items:center;gap:.6rem;margin:1rem 0}.tiers div{border:1px solid var(--mark);border-radius:.3rem;padding:.3rem .7rem}.tiers span{display:block;color:var(--quiet);font-size:13px}.tiers section{display:grid;gap:.6rem}.wide{overflow-x:auto}a{color:var(--mark)}.axis{stroke:var(--line)}.span{stroke:var(--mark);stroke-width:6;stroke-opacity:.45}.dot{fill:var(--mark);fill-opacity:.8}.dot.bad{fill:var(--bad)}.way{fill:none;stroke:var(--mark)}
.cut{stroke:var(--quiet);stroke-dasharray:4 3}.cut.bad{stroke:var(--bad)}.cut.good{stroke:var(--good)}text{font-size:11px;fill:var(--quiet)}
@media(max-width:36rem){body{overflow-wrap:anywhere}table{overflow-wrap:normal}text{font-size:15px}.wide text{font-size:20px}.wide .way{stroke-width:2}.wide .more{display:none}.wide td,.wide th{padding:.2rem;font-size:13px}}
";

/// The page of a comparison, with links to the reports of the sides, as far as they have one.
pub fn claims(claims: &Claims, reports: &[String]) -> String {
    let names: Vec<&str> = claims.sides.iter().map(|side| side.name.as_str()).collect();
    render(&format!("comparison: {}", title(&names)), &blocks::claims(claims, None, reports))
}

/// The page of a history.
pub fn history(history: &History) -> String {
    render("history", &blocks::history(history))
}

/// The page of a search for a limit, which stands in this directory, with what the limit costs, where that is known.
pub fn limit(searches: &Searches, dir: &Path, bills: &[NamedBill]) -> String {
    render(&limit_title(searches), &blocks::limit(searches, dir, bills))
}

/// The page with links to the pages of its trials; of a search that goes on right now it says so.
pub fn limit_linked(searches: &Searches, dir: &Path, goes_on: bool, link: Link<'_>) -> String {
    render(&limit_title(searches), &blocks::limit_linked(searches, dir, goes_on, link))
}

fn limit_title(searches: &Searches) -> String {
    format!("limit: {}", searches.name)
}

/// The page of a plan.
pub fn plan(plan: &Planned) -> String {
    render(&format!("plan: {}", plan.scenario), &blocks::plan(plan))
}

/// The page of the published experiments, repeated.
pub fn reproduction(all: &Reproduction) -> String {
    render("reproduction", &blocks::reproduction(all))
}

/// The page of what JMeter wrote.
pub fn jmeter(figures: &Figures) -> String {
    render(&format!("JMeter: {}", figures.directory), &blocks::jmeter(figures, true))
}

/// A report as a page.
fn render(title: &str, blocks: &[Block]) -> String {
    let title = escape(title);
    let out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>Tidemark: {title}</title><style>\n{STYLE}</style></head>\n<body><h1>Tidemark \
         {title}</h1>\n"
    );
    let mut page = Page { out, in_list: false };
    blocks.iter().for_each(|block| page.block(block));
    page.list(false);
    page.out + "</body></html>\n"
}

impl Level {
    fn class(self) -> &'static str {
        match self {
            Level::Plain | Level::Strong => "plain",
            Level::Quiet => "quiet",
            Level::Good => "good",
            Level::Warning | Level::Unsure => "warning",
            Level::Bad => "bad",
        }
    }
}

/// The page as it grows.
struct Page {
    out: String,
    /// Whether a list goes on.
    in_list: bool,
}

impl Page {
    fn block(&mut self, block: &Block) {
        let is_item = match block {
            Block::Line(..) | Block::Link(..) => true,
            Block::Point(level, ..) => *level == Level::Plain,
            _ => false,
        };
        self.list(is_item);
        match block {
            // a page has its title, and stands where the files are
            Block::Title(..) | Block::Place(..) | Block::Gap => {}
            Block::Verdict(_, says) => says.iter().for_each(|(level, says)| self.paragraph(*level, says)),
            Block::Lead(_, text) => self.put(&format!("<p class=\"lead\">{}</p>", escape(text))),
            Block::Remark(level, text) | Block::Paragraph(level, text) => self.paragraph(*level, text),
            Block::Heading(title) => self.put(&format!("<h2>{}</h2>", escape(title))),
            Block::Line(name, parts) => {
                let part = |(level, part): &(Level, String)| match level {
                    Level::Plain => escape(part),
                    level => format!("<span class=\"{}\">{}</span>", level.class(), escape(part)),
                };
                let parts: Vec<String> =
                    parts.iter().filter(|(_, part)| !part.is_empty()).map(part).collect();
                self.put(&format!("<li><b>{}</b> {}</li>", escape(name), parts.join(" · ")));
            }
            Block::Point(Level::Plain, text, parts) => {
                let parts: String = parts.iter().map(|part| format!(" · {}", escape(part))).collect();
                self.put(&format!("<li>{}{parts}</li>", escape(text)));
            }
            Block::Point(level, text, _) => match level.mark() {
                "-" => self.paragraph(*level, text),
                mark => self.paragraph(*level, &format!("{mark} {text}")),
            },
            Block::Checks(checks) => {
                for (level, name, measured) in checks {
                    self.paragraph(*level, &format!("{} {name}: {measured}", level.mark()));
                }
            }
            Block::Tally(what, count, more) => self.paragraph(Level::Bad, &format!("{what}: {count} {more}")),
            Block::Example(at, text) => self.paragraph(Level::Quiet, &format!("{at} {text}")),
            Block::Table(table) => self.table(table),
            Block::Layouts(layouts) => layouts.iter().take(1).flatten().for_each(|table| self.table(table)),
            Block::Worth(all) => {
                for (name, status, why) in all {
                    self.paragraph(Level::Plain, &format!("{name}: {} {why}", word(*status)));
                }
            }
            Block::Bars(bars) => self.bars(bars),
            Block::Trend(line, trend) => self.out += &self::trend(line, trend),
            Block::Rounds(claims) => rounds(&mut self.out, claims),
            Block::Curve(curve) => limit::curve(&mut self.out, curve),
            Block::Tiers(load, tiers) => self.tiers(load, tiers),
            Block::Chart(lines) => chart::chart(&mut self.out, lines),
            Block::Folded(title, blocks) => {
                self.put(&format!("<details open><summary>{}</summary>", escape(title)));
                blocks.iter().for_each(|block| self.block(block));
                self.list(false);
                self.put("</details>");
            }
            Block::Link(text, to) => {
                // behind the item before it
                let end = self.out.trim_end().strip_suffix("</li>").map_or(self.out.len(), str::len);
                self.out.truncate(end);
                self.put(&format!(", <a href=\"{}\">{}</a></li>", escape(to), escape(text)));
            }
        }
    }

    fn put(&mut self, html: &str) {
        self.out += html;
        self.out.push('\n');
    }

    fn paragraph(&mut self, level: Level, text: &str) {
        self.put(&format!("<p class=\"{}\">{}</p>", level.class(), escape(text)));
    }

    /// Begins a list, or ends it.
    fn list(&mut self, goes_on: bool) {
        match (self.in_list, goes_on) {
            (false, true) => self.put("<ul>"),
            (true, false) => self.put("</ul>"),
            _ => {}
        }
        self.in_list = goes_on;
    }

    /// The first behind the load, the others behind the first.
    fn tiers(&mut self, load: &str, tiers: &[Tier]) {
        let of =
            |tier: &Tier| format!("<div>{}<span>{}</span></div>", escape(&tier.name), escape(&tier.about));
        let Some((first, behind)) = tiers.split_first() else { return };
        let behind: String = behind.iter().map(of).collect();
        let behind = if behind.is_empty() { behind } else { format!("→<section>{behind}</section>") };
        self.put(&format!("<div class=\"tiers\">{} →{}{behind}</div>", escape(load), of(first)));
    }

    /// A histogram: a row for each bar, which is as long as its share of the longest.
    fn bars(&mut self, bars: &[Bar]) {
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
        self.put("<div class=\"wide\"><table class=\"bars\"><tbody>");
        for bar in bars.iter().take(ROWS_MAX) {
            let width = bar.count as f64 / most as f64 * 100.0;
            let (n, share) = (count(bar.count), percent(bar.share));
            let range = escape(&format!("{} to {}", bar.from, bar.to));
            self.put(&format!(
                "<tr><td>{range}</td><td><div style=\"width:{width:.1}%\"></div></td><td>{n}</td><td>{share}</td></tr>"
            ));
        }
        self.put("</tbody></table></div>");
        if let Some(more) = more_than(bars.len(), ROWS_MAX) {
            self.paragraph(Level::Quiet, &format!("and {more} more"));
        }
    }

    fn table(&mut self, table: &Table) {
        let columns = table.columns();
        let head: String =
            columns.iter().map(|at| format!("<th>{}</th>", escape(&table.head[*at]))).collect();
        self.put(&format!("<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>"));
        let cell = |cell: &Cell| match cell {
            Cell::Word(level, word) => format!("<td class=\"{}\">{}</td>", level.class(), escape(word)),
            cell => format!("<td>{}</td>", escape(&cell.text(true))),
        };
        for row in table.rows.iter().take(ROWS_MAX) {
            let cells: String = columns.iter().map(|at| cell(&row[*at])).collect();
            self.put(&format!("<tr>{cells}</tr>"));
        }
        self.put("</tbody></table></div>");
        if let Some(more) = more_than(table.rows.len(), ROWS_MAX) {
            self.paragraph(Level::Quiet, &format!("and {more} more"));
        }
    }
}

/// Each figure with a dot for each round, and where its ratio lies; nothing of one that has neither.
fn rounds(out: &mut String, claims: &[Claim]) {
    let has_bar = |claim: &Claim| claim.low.is_some() && claim.high.is_some();
    let is_drawn = |claim: &&Claim| !claim.rounds.is_empty() || has_bar(claim);
    let claims: Vec<&Claim> = claims.iter().filter(is_drawn).collect();
    let what = match (claims.iter().any(|of| !of.rounds.is_empty()), claims.iter().any(|of| has_bar(of))) {
        (false, false) => return,
        (true, true) => "A dot is a round, the bar is where the ratio lies",
        (true, false) => "A dot is a round",
        (false, true) => "The bar is where the ratio lies",
    };
    let ratios = |claim: &&Claim| -> Vec<f64> {
        claim.rounds.iter().copied().chain(claim.low).chain(claim.high).chain(claim.ratio).collect()
    };
    let logs = claims.iter().flat_map(ratios).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    let edge = logs.map(|ratio| ratio.ln().abs()).fold(LEAST.ln(), f64::max);
    let x = |ratio: f64| WIDTH / 2.0 + (WIDTH / 2.0 - EDGE) * (ratio.ln() / edge).clamp(-1.0, 1.0);
    let (middle, half) = (WIDTH / 2.0, ROW / 2.0);
    for claim in &claims {
        let mut drawn = svg::line("axis", [EDGE, half], [WIDTH - EDGE, half], "")
            + &svg::line("axis", [middle, 2.0], [middle, ROW - 2.0], "");
        if let Some((low, high)) = claim.low.zip(claim.high) {
            drawn += &svg::line("span", [x(low), half], [x(high), half], "");
        }
        for (round, ratio) in (1..).zip(&claim.rounds) {
            // one above the other, as rounds often lie close together
            let y = 6.0 + (ROW - 12.0) * f64::from((round - 1) % 5) / 4.0;
            let says = format!("round {round}: {}", change(*ratio));
            drawn += &svg::dot("dot", [x(*ratio), y], 3.0, &says);
        }
        let caption = format!("{}: {}", claim.figure.name(), range(claim));
        *out += &svg::figure("", &caption, &claim.says, ROW, &drawn);
    }
    *out += &format!(
        "<p class=\"quiet\">{what}; the middle is no difference, the edges {} and {}.</p>\n",
        change((-edge).exp()),
        change(edge.exp())
    );
}

/// A figure over the runs of a line.
fn trend(line: &Line, trend: &Trend) -> String {
    let known = || trend.values.iter().flatten().copied();
    let (least, most) =
        known().fold((f64::INFINITY, 0.0f64), |(least, most), of| (least.min(of), most.max(of)));
    let x = |at: usize| EDGE + (WIDTH - 2.0 * EDGE) * at as f64 / (trend.values.len().max(2) - 1) as f64;
    // from 0, so that a change looks as large as it is
    let y = |value: f64| TREND - EDGE - (TREND - 2.0 * EDGE) * value / most.max(f64::MIN_POSITIVE);
    let named = |of: f64| value(trend.figure, Some(of));
    let floor = TREND - EDGE;
    let mut drawn = svg::line("axis", [EDGE, floor], [WIDTH - EDGE, floor], "");
    for changed in &trend.changes {
        let (at, class) = (x(changed.at), if changed.worse { "cut bad" } else { "cut good" });
        let says = format!("{}: {}", changed.run, changed.says);
        drawn += &svg::line(class, [at, 2.0], [at, floor], &says);
    }
    let points = (0..).zip(&trend.values).filter_map(|(at, value)| Some((at, (*value)?)));
    drawn += &svg::way(points.clone().map(|(at, value)| [x(at), y(value)]), "");
    for (at, value) in points {
        let run = &line.runs[at];
        let revision = run.revision.as_deref().unwrap_or("no revision");
        let (class, verdict) = match run.status {
            Status::Fail => ("dot bad", ", failed"),
            Status::Pass | Status::Invalid => ("dot", ""),
        };
        let says = format!("{} ({revision}{verdict}): {}", run.run, named(value));
        drawn += &svg::dot(class, [x(at), y(value)], 2.5, &says);
    }
    let name = trend.figure.name();
    let caption = format!("{name} ({} to {}, last {})", named(least), named(most), trend.last());
    svg::figure("", &caption, &format!("{name} over {} runs", line.runs.len()), TREND, &drawn)
}

fn escape(text: &str) -> String {
    let text = text.replace(|c: char| c != '\n' && steers(c), " ");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::{fitted, shown};
    use crate::comparison::{Asked, Figure, Side};
    use crate::history::Changed;
    use crate::test_run;

    #[test]
    fn tiers_stand_behind_the_first_everywhere_and_no_markup_of_others() {
        let tier = |name: &str, about: &str| Tier { name: name.into(), about: about.into() };
        let tiers = vec![tier("<web>", "2 instances"), tier("redis", "1 instance"), tier("db", "1 instance")];
        let blocks = [Block::Tiers("500/s".into(), tiers)];
        let lines =
            "  500/s → <web>  2 instances\n           ├─ redis  1 instance\n           └─ db  1 instance\n";
        assert!(shown(&blocks, 80).starts_with(lines), "{}", shown(&blocks, 80));
        assert!(fitted(&blocks, 40).contains("├─ redis"));
        let text = crate::markdown::render(&blocks);
        assert!(text.contains("500/s\n\n- &lt;web&gt;: 2 instances\n- redis: 1 instance\n- db: "), "{text}");
        let page = render("x", &blocks);
        let boxes = "500/s →<div>&lt;web&gt;<span>2 instances</span></div>→<section><div>redis<span>1 instance</span>";
        assert!(page.contains(boxes), "{page}");
        let alone = render("x", &[Block::Tiers("1/s".into(), vec![tier("web", "1 instance")])]);
        assert!(
            alone.contains("web<span>1 instance</span></div></div>") && !alone.contains("<section>"),
            "{alone}"
        );
    }

    #[test]
    fn a_comparison_has_a_dot_for_each_round_and_no_markup_of_others() {
        let (dir, _run) = test_run::airline();
        let side = |name: &str| Side::of_runs(name, &[dir.path().to_owned()]).unwrap();
        let mut of = Claims::of(&[side("a"), side("<script>")], Asked::default()).unwrap();
        of.comparisons[0].rounds = vec![1.0, 1.1, 0.9];
        (of.comparisons[0].low, of.comparisons[0].high) = (Some(0.9), Some(1.2));
        let page = claims(&of, &[]);
        assert_eq!(page.matches("<circle").count(), 3);
        assert!(page.contains("<title>round 2: +10%</title>") && page.contains("class=\"span\""), "{page}");
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("<th>A</th><th>B</th><th>change</th>"), "{page}");
        assert!(page.contains("<h1>Tidemark comparison: &lt;script&gt; against a</h1>"), "{page}");
        assert!(page.ends_with("</html>\n"));
        // what has neither dot nor bar is in the table alone
        assert_eq!(page.matches("<figure>").count(), drawn(&of), "{page}");
        assert!(page.contains("A dot is a round, the bar is where"), "{page}");
        for claim in &mut of.comparisons {
            (claim.low, claim.high, claim.rounds) = (None, None, Vec::new());
        }
        let page = claims(&of, &[]);
        assert!(!page.contains("<figure>") && !page.contains("bar is where"), "{page}");
        assert!(page.contains("<tr><td>"), "{page}");
    }

    /// Of how many figures of all requests there is something to draw.
    fn drawn(of: &Claims) -> usize {
        let all = of.comparisons.iter().filter(|claim| claim.label.is_none());
        all.filter(|claim| !claim.rounds.is_empty() || claim.low.is_some()).count()
    }

    #[test]
    fn a_history_has_a_dot_for_each_run_and_a_line_for_each_change() {
        let revisions = [None, None];
        let (ratio, low, high, says) = (2.0, 1.9, 2.1, "p99 +90% to +110%".to_owned());
        let changed = Changed { at: 2, run: "c".into(), revisions, ratio, low, high, worse: true, says };
        let values = vec![Some(1_000.0), None, Some(2_000.0)];
        let line = Line {
            scenario: "shop & co".into(),
            what: vec!["closed".into()],
            scenario_digest: None,
            machine: "4 cores".into(),
            runs: ["a", "b", "c"].map(test_run::point).to_vec(),
            trends: vec![Trend { figure: Figure::P99, values, not_reached: vec![1], changes: vec![changed] }],
        };
        let mut failed = line.clone();
        let page =
            history(&History { folder: "runs".into(), lines: vec![line], notes: vec!["a < b".into()] });
        assert_eq!((page.matches("<circle").count(), page.matches("class=\"cut bad\"").count()), (2, 1));
        assert!(
            page.contains("shop &amp; co") && page.contains("a &lt; b") && page.contains("1.00ms to 2.00ms"),
            "{page}"
        );
        assert!(page.contains("worse from c on: p99 +90% to +110%"), "{page}");
        assert!(!page.contains("class=\"dot bad\"") && !page.contains(" failed"), "{page}");
        failed.runs.truncate(2);
        failed.runs.iter_mut().for_each(|run| run.status = Status::Fail);
        failed.trends[0].values.truncate(2);
        failed.trends[0].changes.clear();
        let page = history(&History { folder: "runs".into(), lines: vec![failed], notes: Vec::new() });
        assert_eq!(page.matches("<circle class=\"dot bad\"").count(), 1, "{page}");
        assert!(page.contains("<span class=\"bad\">2 of 2 runs failed</span>"), "{page}");
        assert!(page.contains("p99 (1.00ms to 1.00ms, last not reached)"), "{page}");
    }
}
