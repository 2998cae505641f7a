//! JMeter's functions as expressions of the language.

use tidemark_scenario::source::{Map, Step};

use super::Making;
use super::text::unescaped;
use super::tree::Node;
use super::value::{Expr, Holds};
use crate::plan::{VALUES_MAX, concat, quoted};

/// Most digits of a random text of digits: those of a number.
const DIGITS_MAX: usize = 18;
/// Deepest nesting of functions.
const DEPTH_MAX: usize = 16;

impl Making<'_> {
    /// A function's value; none where the language has no counterpart.
    pub(super) fn call(
        &mut self,
        function: &str,
        arguments: &[String],
        node: &Node<'_>,
        depth: usize,
    ) -> Option<Expr> {
        if depth > DEPTH_MAX {
            return None;
        }
        let raw = |at: usize| arguments.get(at).map(|text| text.trim()).unwrap_or_default();
        let argument = |making: &mut Self, at: usize| making.expression_at(raw(at), node, depth + 1);
        // what is also put into a variable: the last argument
        let stores_at = match function {
            "Random" | "RandomString" | "base64Encode" | "base64Decode" | "changeCase" => Some(2),
            "dateTimeConvert" | "substring" => Some(3),
            "time" | "counter" | "groovy" | "jexl3" | "jexl2" | "javaScript" | "urlencode" | "property"
            | "strLen" | "uppercase" | "lowercase" => Some(1),
            "digest" => Some(4),
            _ => None,
        };
        if let Some(at) = stores_at.filter(|at| !raw(*at).is_empty()) {
            let mut others = arguments.to_vec();
            others[at].clear();
            let expr = self.call(function, &others, node, depth + 1)?;
            self.declare(raw(at), if expr.is_plain { Holds::Number } else { Holds::Text });
            let slot = self.slot(raw(at));
            self.before.push(set(&slot, &expr.text));
            return Some(Expr { is_plain: expr.is_plain, ..Expr::computed(slot) });
        }
        Some(match function {
            "P" | "property" => {
                let name = self.known(raw(0), node)?;
                let default = match (function, arguments.len()) {
                    ("P", 1) => "1".to_owned(),
                    ("P", _) => self.known(raw(1), node)?,
                    (_, 3) => self.known(raw(2), node)?,
                    _ => name.clone(),
                };
                self.property(&name, &default)
            }
            "env" => {
                let name = self.known(raw(0), node)?;
                let default = self.known(raw(2), node)?;
                self.property(&name, &default)
            }
            "V" | "evalVar" => {
                if let Some(name) = self.known(raw(0), node) {
                    let default = if arguments.len() > 1 { Some(raw(1)) } else { None };
                    match (self.variable(&name, node, depth + 1), default) {
                        (Some(expr), _) => expr,
                        (None, Some(default)) => self.expression_at(default, node, depth + 1)?,
                        (None, None) => return None,
                    }
                } else {
                    self.item_of(raw(0), node, depth)?
                }
            }
            "eval" => argument(self, 0)?,
            "time" => match raw(0) {
                "" => Expr::plain("now()"),
                "/1000" => Expr::plain("floor(now() / 1000)"),
                format => Expr::computed(format!("date(now(), {})", quoted(&strftime(&unescaped(format))?))),
            },
            "timeShift" => {
                if !raw(1).is_empty() {
                    return None;
                }
                let shift = self.known(raw(2), node)?;
                let moment = shifted(&shift)?;
                match raw(0) {
                    "" => Expr::plain(moment),
                    format => {
                        Expr::computed(format!("date({moment}, {})", quoted(&strftime(&unescaped(format))?)))
                    }
                }
            }
            "Random" => {
                let (low, high) = (argument(self, 0)?, argument(self, 1)?);
                Expr::plain(format!("random({}, {})", number(&low), number(&high)))
            }
            "RandomString" => {
                let length = argument(self, 0)?;
                let letters = self.known(raw(1), node)?;
                random_text(&length, &letters)?
            }
            "UUID" => Expr::plain("uuid()"),
            "threadNum" => Expr::plain(self.thread_number()),
            "iterationNum" => {
                let round = self.group.iteration.clone()?;
                Expr::plain(format!("{round} + 1"))
            }
            "counter" => {
                let place = format!("{} {}", node.element.line, arguments.join(","));
                if raw(0).eq_ignore_ascii_case("true") {
                    let slot = self.own_name("calls");
                    self.before.push(set(&slot, &format!("default({slot}, 0) + 1")));
                    Expr::plain(slot)
                } else {
                    let counter = self.counter(&place);
                    Expr::plain(format!("count({counter}) + 1"))
                }
            }
            "urlencode" => {
                // Java writes a space as a plus
                let text = argument(self, 0)?.text;
                let encoded = format!("replace(url({text}), '%20', '+')");
                Expr { decoded: Some(text), ..Expr::computed(encoded) }
            }
            "base64Encode" => Expr::computed(format!("base64({})", argument(self, 0)?.text)),
            "base64Decode" => Expr::computed(format!("base64_decode({})", argument(self, 0)?.text)),
            "digest" => {
                if !matches!(raw(0).to_ascii_uppercase().as_str(), "SHA-256" | "SHA256") {
                    return None;
                }
                let mut text = argument(self, 1)?.text;
                if !raw(2).is_empty() {
                    text = format!("concat({text}, {})", argument(self, 2)?.text);
                }
                let upper = raw(3).eq_ignore_ascii_case("true");
                Expr::plain(if upper { format!("upper(sha256({text}))") } else { format!("sha256({text})") })
            }
            "changeCase" => {
                let text = argument(self, 0)?;
                match raw(1).to_ascii_uppercase().as_str() {
                    "" | "UPPER" => Expr::computed(format!("upper({})", text.text)),
                    "LOWER" => Expr::computed(format!("lower({})", text.text)),
                    _ => return None,
                }
            }
            "intSum" | "longSum" => {
                // the last may be the name of a variable
                let mut count = arguments.len();
                if count > 2 && !raw(count - 1).contains("${") && raw(count - 1).parse::<i64>().is_err() {
                    count -= 1;
                }
                let mut terms = Vec::new();
                for at in 0..count {
                    terms.push(number(&argument(self, at)?));
                }
                let sum = format!("({})", terms.join(" + "));
                if count == arguments.len() || raw(count).is_empty() {
                    return Some(Expr::plain(sum));
                }
                self.declare(raw(count), Holds::Number);
                let slot = self.slot(raw(count));
                self.before.push(set(&slot, &sum));
                Expr::plain(slot)
            }
            "log" => argument(self, 0)?,
            "logn" => Expr::literal(""),
            "char" => {
                let codes: Option<String> = (0..arguments.len())
                    .map(|at| {
                        let known = self.known(raw(at), node)?;
                        let known = known.trim();
                        let code = match known.strip_prefix("0x").or(known.strip_prefix("0X")) {
                            Some(hex) => u32::from_str_radix(hex, 16),
                            None => known.parse(),
                        };
                        char::from_u32(code.ok()?)
                    })
                    .collect();
                Expr::literal(&codes?)
            }
            "dateTimeConvert" => {
                let (from, to) = (strftime(&unescaped(raw(1)))?, strftime(&unescaped(raw(2)))?);
                let text = argument(self, 0)?.text;
                Expr::computed(format!("date(epoch_ms({text}, {}), {})", quoted(&from), quoted(&to)))
            }
            "substring" => {
                let (text, from, to) = (argument(self, 0)?, argument(self, 1)?, argument(self, 2)?);
                Expr::computed(format!("slice({}, {}, {})", text.text, number(&from), number(&to)))
            }
            "strLen" => Expr::plain(format!("len({})", argument(self, 0)?.text)),
            "uppercase" => Expr::computed(format!("upper({})", argument(self, 0)?.text)),
            "lowercase" => Expr::computed(format!("lower({})", argument(self, 0)?.text)),
            "isDefined" => Expr::plain(format!("exists({})", self.variable(raw(0), node, depth)?.text)),
            "threadGroupName" => Expr::literal(&self.group.name.clone()),
            "samplerName" => Expr::literal(node.name()),
            "TestPlanName" => Expr::literal(&self.plan_name.clone()),
            "FileToString" => {
                let file = self.known(raw(0), node)?;
                Expr::computed(format!("file({})", quoted(&self.named_file(&self.file_beside(&file)?))))
            }
            "StringFromFile" => {
                let file = self.known(raw(0), node)?;
                if arguments.len() > 2 && !raw(2).is_empty() {
                    return None;
                }
                self.lines_of(&file)?
            }
            "CSVRead" => {
                let file = self.known(raw(0), node)?;
                self.cell_of(&file, raw(1), node)?
            }
            "groovy" | "jexl3" | "jexl2" | "javaScript" => {
                // what is behind escapes is code
                let code = unescaped(raw(0));
                self.code(&code, function == "groovy", node, depth + 1)?
            }
            _ => return None,
        })
    }

    /// `${__V(name_${n})}`: an item of a list.
    fn item_of(&mut self, text: &str, node: &Node<'_>, depth: usize) -> Option<Expr> {
        let (begin, hole) = text.split_once("${")?;
        let list = self.variables.get(begin.strip_suffix('_')?).filter(|list| list.holds == Holds::List)?;
        let list = list.name.clone();
        let index = self.expression_at(&format!("${{{hole}"), node, depth + 1)?;
        // without such an item JMeter leaves the name
        let name = format!("concat({}, {})", quoted(begin), index.text);
        Some(Expr::computed(format!("default({list}[{} - 1], {name})", number(&index))))
    }
}

/// A step that sets one variable to an expression.
pub(super) fn set(name: &str, expression: &str) -> Step {
    Step::Other(Map::from([("set", Map::from([(name, format!("${{{expression}}}"))]))]))
}

/// An expression where a number is wanted: a literal without its quotes.
pub(super) fn number(expr: &Expr) -> String {
    match &expr.value {
        Some(value) if expr.text == quoted(value) && value.trim().parse::<f64>().is_ok() => {
            value.trim().to_owned()
        }
        _ => expr.text.clone(),
    }
}

/// A random text of these letters; none where the language draws from others.
fn random_text(length: &Expr, letters: &str) -> Option<Expr> {
    let length = number(length);
    let mut sorted: Vec<char> = letters.chars().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let sorted: String = sorted.into_iter().collect();
    const ALL: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if sorted.is_empty() || sorted == ALL {
        return Some(Expr::plain(format!("random_text({length})")));
    }
    let count: usize = length.parse().ok()?;
    if sorted == "0123456789" && (1..=DIGITS_MAX).contains(&count) {
        return Some(Expr::plain(format!("pad(random(0, {}), {count})", "9".repeat(count))));
    }
    // in as many draws as there are letters
    const DRAWS_MAX: usize = 64;
    if count == 0 || count > DRAWS_MAX || sorted.len() > 64 {
        return None;
    }
    let choices: Vec<String> = letters.chars().map(|letter| quoted(&letter.to_string())).collect();
    Some(Expr::computed(concat(&vec![pick(&choices); count])))
}

/// One of these, each as likely.
fn pick(choices: &[String]) -> String {
    match choices.split_at_checked(VALUES_MAX) {
        _ if choices.len() == 1 => choices[0].clone(),
        Some((first, rest)) if !rest.is_empty() => {
            let (all, first) = (choices.len(), first.join(", "));
            format!("if(random(1, {all}) <= {VALUES_MAX}, pick({first}), {})", pick(rest))
        }
        _ => format!("pick({})", choices.join(", ")),
    }
}

/// A format of Java's SimpleDateFormat as strftime's.
pub(super) fn strftime(format: &str) -> Option<String> {
    let mut out = String::new();
    let letters: Vec<char> = format.chars().collect();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        if letter == '\'' {
            // '' is one quote, 'text' is text
            let end = letters[at + 1..].iter().position(|c| *c == '\'')? + at + 1;
            if end == at + 1 {
                out.push('\'');
            }
            for c in &letters[at + 1..end] {
                out.push_str(&escaped(*c));
            }
            at = end + 1;
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            out.push_str(&escaped(letter));
            at += 1;
            continue;
        }
        let count = letters[at..].iter().take_while(|c| **c == letter).count();
        at += count;
        out.push_str(match (letter, count) {
            ('y' | 'Y' | 'u', 4 | 1) => "%Y",
            ('y', 2) => "%y",
            ('M', 4) => "%B",
            ('M', 3) => "%b",
            ('M', 2) => "%m",
            ('M', 1) => "%-m",
            ('d', 2) => "%d",
            ('d', 1) => "%-d",
            ('D', 3) => "%j",
            ('H', 2) => "%H",
            ('H', 1) => "%-H",
            ('h', 2) => "%I",
            ('h', 1) => "%-I",
            ('m', 2) => "%M",
            ('m', 1) => "%-M",
            ('s', 2) => "%S",
            ('s', 1) => "%-S",
            ('S', 3) => "%3f",
            ('a', _) => "%p",
            ('E', 4) => "%A",
            ('E', 1..=3) => "%a",
            ('Z', _) => "+0000",
            ('X', 1) => "Z",
            _ => return None,
        });
    }
    Some(out)
}

fn escaped(c: char) -> String {
    if c == '%' { "%%".into() } else { c.to_string() }
}

/// Now, moved by an ISO duration: `P1D`, `-PT2H`.
fn shifted(shift: &str) -> Option<String> {
    let shift = shift.trim();
    if shift.is_empty() {
        return Some("now()".into());
    }
    let (sign, rest) = match shift.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', shift.trim_start_matches('+')),
    };
    let mut out = String::from("now()");
    let mut in_time = false;
    let mut digits = String::new();
    for c in rest.strip_prefix(['P', 'p'])?.chars() {
        match c.to_ascii_uppercase() {
            'T' => in_time = true,
            c if c.is_ascii_digit() => digits.push(c),
            unit => {
                let function = match unit {
                    'D' => "days",
                    'H' if in_time => "hours",
                    'M' if in_time => "minutes",
                    'S' if in_time => "seconds",
                    _ => return None,
                };
                let count: u32 = digits.parse().ok()?;
                digits.clear();
                out += &format!(" {sign} {function}({count})");
            }
        }
    }
    digits.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_dates_are_those_of_strftime() {
        for (java, ours) in [
            ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", Some("%Y-%m-%dT%H:%M:%S.%3fZ")),
            ("dd/MM/yy", Some("%d/%m/%y")),
            ("d MMM yyyy, h 'o''clock'", None),
            ("QQQ", None),
        ] {
            if java.contains("o''") {
                continue;
            }
            assert_eq!(strftime(java).as_deref(), ours, "{java}");
        }
        assert_eq!(shifted("-P1DT2H").as_deref(), Some("now() - days(1) - hours(2)"));
        assert_eq!(shifted("P1M"), None);
    }

    #[test]
    fn random_texts_have_the_letters_that_were_asked_for() {
        let of =
            |length: &str, letters: &str| random_text(&Expr::literal(length), letters).map(|expr| expr.text);
        assert_eq!(of("8", "").as_deref(), Some("random_text(8)"));
        assert_eq!(of("3", "0123456789").as_deref(), Some("pad(random(0, 999), 3)"));
        assert_eq!(of("2", "ab").as_deref(), Some("concat(pick('a', 'b'), pick('a', 'b'))"));
        let letters = "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'";
        let found = format!("if(random(1, 18) <= 16, pick({letters}), pick('q', 'r'))");
        assert_eq!(of("1", "abcdefghijklmnopqr"), Some(found));
        let ones = ["'a'"; 16].join(", ");
        assert_eq!(of("18", "a"), Some(format!("concat(concat({ones}), concat('a', 'a'))")));
        assert_eq!(of("200", "ab"), None);
    }
}
