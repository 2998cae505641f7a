//! Conditions and one-line scripts: what of JavaScript, Groovy and JEXL is plain arithmetic, comparison or text becomes an
//! expression of the language. Anything else is no expression.

use super::Making;
use super::function::number;
use super::script::local_key;
use super::tree::Node;
use super::value::Expr;
use crate::plan::quoted;

/// Deepest nesting of a condition.
const DEPTH_MAX: usize = 40;

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Truth,
    /// A hole, which is put into the code as it is.
    Hole,
}

/// A value and how tightly its text binds.
struct Value {
    expr: Expr,
    kind: Kind,
}

impl Value {
    fn new(text: impl Into<String>, kind: Kind) -> Value {
        let is_plain = kind == Kind::Number;
        Value { expr: Expr { is_plain, ..Expr::computed(text) }, kind }
    }

    /// A number, and what it is where all of it is known.
    fn number(text: String, known: Option<f64>) -> Value {
        let mut value = Value::new(text, Kind::Number);
        value.expr.value = known.filter(|known| known.is_finite()).map(|known| known.to_string());
        value
    }

    fn known(&self) -> Option<f64> {
        self.expr.value.as_deref().unwrap_or(&self.expr.text).trim().parse().ok()
    }

    /// Whether it is a text that is no number.
    fn is_no_number(&self) -> bool {
        self.expr.value.as_ref().is_some_and(|value| self.expr.text == quoted(value))
            && self.known().is_none()
    }

    /// Its text where a number is wanted.
    fn as_number(&self) -> String {
        number(&self.expr)
    }
}

impl Making<'_> {
    /// An expression of code; Groovy holds no number for a text.
    pub(super) fn code(
        &mut self,
        code: &str,
        is_groovy: bool,
        node: &Node<'_>,
        depth: usize,
    ) -> Option<Expr> {
        if depth > DEPTH_MAX || code.len() > 4_000 {
            return None;
        }
        let code = code.trim().trim_end_matches(';').trim();
        let code = code.strip_prefix("return ").unwrap_or(code);
        let mut parser = Parser { making: self, node, rest: code, depth, is_groovy };
        let value = parser.ternary()?;
        parser.space();
        parser.rest.is_empty().then_some(value.expr)
    }

    /// The condition of an If or While controller, and whether it stands for what it says: without `is_text` it is code.
    pub(super) fn condition(&mut self, text: &str, is_text: bool, node: &Node<'_>) -> Option<String> {
        let text = text.trim();
        let constant = match text.to_ascii_lowercase().as_str() {
            "true" => Some("true"),
            "false" => Some("false"),
            _ => None,
        };
        if let Some(constant) = constant {
            return Some(constant.to_owned());
        }
        if !is_text {
            return self.code(text, false, node, 0).map(|expr| expr.text);
        }
        // one function of code says the condition itself
        let is_code = ["${__groovy(", "${__jexl3(", "${__jexl2(", "${__javaScript("]
            .iter()
            .any(|begin| text.starts_with(begin));
        let expr = self.expression(text, node)?;
        Some(if is_code { expr.text } else { format!("lower(text({})) == 'true'", expr.text) })
    }
}

struct Parser<'m, 'a, 'p, 'c> {
    making: &'m mut Making<'a>,
    node: &'m Node<'p>,
    rest: &'c str,
    depth: usize,
    is_groovy: bool,
}

impl Parser<'_, '_, '_, '_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a sign or a word that is next.
    fn takes(&mut self, sign: &str) -> bool {
        self.space();
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        let is_word = sign.ends_with(|c: char| c.is_ascii_alphanumeric());
        if is_word && rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn takes_any(&mut self, signs: &[&str]) -> bool {
        signs.iter().any(|sign| self.takes(sign))
    }

    fn ternary(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let condition = self.or()?;
        self.space();
        let value = if !self.rest.starts_with("?:") && !self.rest.starts_with("?.") && self.takes("?") {
            let then = self.ternary()?;
            if !self.takes(":") {
                return None;
            }
            let other = self.ternary()?;
            let kind = if then.kind == other.kind { then.kind } else { Kind::Hole };
            Value::new(format!("if({}, {}, {})", condition.expr.text, then.expr.text, other.expr.text), kind)
        } else {
            condition
        };
        self.depth -= 1;
        Some(value)
    }

    fn or(&mut self) -> Option<Value> {
        let mut left = self.and()?;
        while self.takes_any(&["||", "or"]) {
            let right = self.and()?;
            left = Value::new(format!("({} or {})", left.expr.text, right.expr.text), Kind::Truth);
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Value> {
        let mut left = self.comparison()?;
        while self.takes_any(&["&&", "and"]) {
            let right = self.comparison()?;
            left = Value::new(format!("({} and {})", left.expr.text, right.expr.text), Kind::Truth);
        }
        Some(left)
    }

    fn comparison(&mut self) -> Option<Value> {
        let left = self.sum()?;
        self.space();
        const SIGNS: [(&str, &str); 14] = [
            ("===", "=="),
            ("!==", "!="),
            ("==", "=="),
            ("!=", "!="),
            ("<=", "<="),
            (">=", ">="),
            ("<", "<"),
            (">", ">"),
            ("eq", "=="),
            ("ne", "!="),
            ("le", "<="),
            ("ge", ">="),
            ("lt", "<"),
            ("gt", ">"),
        ];
        if self.rest.starts_with("=~") || self.rest.starts_with("==~") {
            return None;
        }
        let Some((_, sign)) = SIGNS.iter().find(|(sign, _)| self.takes(sign)) else { return Some(left) };
        let right = self.sum()?;
        // "${x}" == "\${x}": is it set at all?
        for (hole, literal) in [(&left, &right), (&right, &left)] {
            let is_own = literal.expr.value.as_ref().is_some_and(|text| {
                text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|name| {
                    self.making.variables.get(name).is_some_and(|variable| variable.name == hole.expr.text)
                })
            });
            if is_own && matches!(*sign, "==" | "!=") {
                let not = if *sign == "==" { "not " } else { "" };
                return Some(Value::new(format!("{not}exists({})", hole.expr.text), Kind::Truth));
            }
        }
        let is_order = !matches!(*sign, "==" | "!=");
        let is_number = |value: &Value| matches!(value.kind, Kind::Number | Kind::Hole);
        if is_order
            && !(is_number(&left) && is_number(&right))
            && (left.kind == Kind::Text && right.kind == Kind::Text)
        {
            // by letters in theirs
            return None;
        }
        let is_mixed = |one: &Value, other: &Value| one.kind == Kind::Text && other.kind == Kind::Number;
        if self.is_groovy && !is_order && (is_mixed(&left, &right) || is_mixed(&right, &left)) {
            return None;
        }
        // what is true in JSON is no text here
        let is_truth =
            |value: &Value| matches!(value.expr.text.as_str(), "true" | "false" | "'true'" | "'false'");
        let side = |value: &Value, other: &Value| match value.kind {
            _ if is_truth(value) && other.kind != Kind::Truth => quoted(value.expr.text.trim_matches('\'')),
            Kind::Text | Kind::Hole if is_truth(other) => format!("text({})", value.expr.text),
            Kind::Text => value.expr.text.clone(),
            _ => value.as_number(),
        };
        Some(Value::new(format!("{} {sign} {}", side(&left, &right), side(&right, &left)), Kind::Truth))
    }

    fn sum(&mut self) -> Option<Value> {
        let mut left = self.product()?;
        loop {
            self.space();
            if self.rest.starts_with("++") || self.rest.starts_with("--") {
                return None;
            }
            let is_plus = self.takes("+");
            if !is_plus && !self.takes("-") {
                return Some(left);
            }
            let right = self.product()?;
            left = if is_plus && (left.kind == Kind::Text || right.kind == Kind::Text) {
                Value::new(format!("concat({}, {})", left.expr.text, right.expr.text), Kind::Text)
            } else if left.is_no_number() || right.is_no_number() {
                return None;
            } else {
                let sign = if is_plus { "+" } else { "-" };
                let known = left.known().zip(right.known());
                let known = known.map(|(left, right)| if is_plus { left + right } else { left - right });
                Value::number(format!("({} {sign} {})", left.as_number(), right.as_number()), known)
            };
        }
    }

    fn product(&mut self) -> Option<Value> {
        let mut left = self.unary()?;
        loop {
            let Some(sign) = ["*", "/", "%"].into_iter().find(|sign| self.takes(sign)) else {
                return Some(left);
            };
            let right = self.unary()?;
            let is_text = |value: &Value| value.kind == Kind::Text || value.is_no_number();
            if is_text(&left) || is_text(&right) {
                return None;
            }
            // what a division makes of whole numbers is not the same in all of them
            let known = left.known().zip(right.known()).filter(|_| sign == "*");
            let known = known.map(|(left, right)| left * right);
            left = Value::number(format!("({} {sign} {})", left.as_number(), right.as_number()), known);
        }
    }

    fn unary(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.space();
        let value = if !self.rest.starts_with("!=") && self.takes("!") || self.takes("not") {
            let value = self.unary()?;
            Value::new(format!("not ({})", value.expr.text), Kind::Truth)
        } else if self.takes("-") {
            let value = self.unary()?;
            if value.is_no_number() {
                return None;
            }
            Value::new(format!("(0 - {})", value.as_number()), Kind::Number)
        } else {
            let first = self.primary()?;
            self.members(first)?
        };
        self.depth -= 1;
        Some(value)
    }

    fn primary(&mut self) -> Option<Value> {
        self.space();
        if self.takes("(") {
            let inner = self.ternary()?;
            if !self.takes(")") {
                return None;
            }
            let text = match inner.expr.text.starts_with(['(', '\'']) {
                true => inner.expr.text.clone(),
                false => format!("({})", inner.expr.text),
            };
            return Some(Value { expr: Expr { text, ..inner.expr }, kind: inner.kind });
        }
        if let Some(text) = self.string() {
            let expr = self.making.expression_at(&text, self.node, self.depth)?;
            return Some(Value { expr, kind: Kind::Text });
        }
        if self.rest.starts_with("${") {
            let end = hole_end(self.rest)?;
            let (hole, rest) = self.rest.split_at(end);
            self.rest = rest;
            let expr = self.making.expression_at(hole, self.node, self.depth)?;
            return Some(Value { expr, kind: Kind::Hole });
        }
        let digits =
            self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        if digits > 0 {
            let (digits, rest) = self.rest.split_at(digits);
            digits.parse::<f64>().ok()?;
            self.rest = rest.strip_prefix(['L', 'l', 'd', 'f']).unwrap_or(rest);
            return Some(Value::new(digits, Kind::Number));
        }
        for (word, text, kind) in
            [("true", "true", Kind::Truth), ("false", "false", Kind::Truth), ("null", "missing", Kind::Hole)]
        {
            if self.takes(word) {
                return Some(Value::new(text, kind));
            }
        }
        for begin in ["vars.get(", "props.get(", "vars[", "props["] {
            if self.takes(begin) {
                self.space();
                let name = self.string()?;
                if !self.takes_any(&[")", "]"]) {
                    return None;
                }
                let expr = match begin.starts_with("vars") {
                    true => self.making.variable(&name, self.node, self.depth)?,
                    false => self.making.property(&name, ""),
                };
                return Some(Value { expr, kind: Kind::Text });
            }
        }
        for begin in ["Integer.parseInt(", "Long.parseLong(", "Integer.valueOf(", "parseInt(", "Number("] {
            if self.takes(begin) {
                let inner = self.closed()?;
                return Some(Value::new(format!("number({})", inner.expr.text), Kind::Number));
            }
        }
        if self.takes_any(&["String.valueOf(", "Integer.toString(", "Long.toString("]) {
            return Some(Value::new(self.closed()?.expr.text, Kind::Text));
        }
        if self.takes_any(&["new Random().nextInt(", "new java.util.Random().nextInt("]) {
            let bound = self.closed().filter(|bound| !bound.is_no_number())?.as_number();
            return Some(Value::new(format!("random(0, {bound} - 1)"), Kind::Number));
        }
        if self.takes("Math.floor(Math.random()") && self.takes("*") {
            let bound = self.unary().filter(|bound| !bound.is_no_number())?.as_number();
            let is_closed = self.takes(")");
            return is_closed.then(|| Value::new(format!("random(0, {bound} - 1)"), Kind::Number));
        }
        for (code, text, kind) in [
            ("System.currentTimeMillis()", "now()", Kind::Number),
            ("new Date().getTime()", "now()", Kind::Number),
            ("new Date().time", "now()", Kind::Number),
            ("UUID.randomUUID().toString()", "uuid()", Kind::Text),
            ("UUID.randomUUID()", "uuid()", Kind::Text),
            ("java.util.UUID.randomUUID()", "uuid()", Kind::Text),
        ] {
            if self.takes(code) {
                return Some(Value::new(text, kind));
            }
        }
        // variables of JEXL are those of the plan
        let length = self.rest.len()
            - self.rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        let (word, rest) = self.rest.split_at(length);
        if word.is_empty() || rest.trim_start().starts_with('(') {
            return None;
        }
        let local = self.making.locals.get(&local_key(word, self.node)).cloned();
        if let Some((slot, is_number)) = local {
            self.rest = rest;
            return Some(Value::new(slot, if is_number { Kind::Number } else { Kind::Text }));
        }
        if !self.making.variables.contains_key(word) {
            return None;
        }
        self.rest = rest;
        let expr = self.making.variable(word, self.node, self.depth)?;
        Some(Value { expr, kind: Kind::Hole })
    }

    /// A value and the parenthesis behind it.
    fn closed(&mut self) -> Option<Value> {
        let inner = self.ternary()?;
        self.takes(")").then_some(inner)
    }

    /// A quoted text, without its quotes and escapes of quotes.
    fn string(&mut self) -> Option<String> {
        let mark = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let mut out = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, found)) = chars.next() {
            if found == mark {
                self.rest = &self.rest[1 + at + 1..];
                return Some(out);
            }
            if found == '\\' {
                let (_, next) = chars.next()?;
                match next {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    '$' => out.push_str("\\$"),
                    next => out.push(next),
                }
                continue;
            }
            out.push(found);
        }
        None
    }

    /// `.equals(…)`, `.toInteger()` and the like behind a value.
    fn members(&mut self, mut value: Value) -> Option<Value> {
        loop {
            self.space();
            if self.takes("as int") || self.takes("as Integer") || self.takes("as long") {
                value = Value::new(format!("number({})", value.expr.text), Kind::Number);
                continue;
            }
            if !self.rest.starts_with('.') && !self.rest.starts_with("?.") {
                return Some(value);
            }
            self.rest = self.rest.trim_start_matches('?').trim_start_matches('.');
            let text = value.expr.text.clone();
            let without = [
                ("toInteger()", format!("number({text})"), Kind::Number),
                ("toLong()", format!("number({text})"), Kind::Number),
                ("intValue()", format!("number({text})"), Kind::Number),
                ("toString()", text.clone(), Kind::Text),
                ("trim()", format!("trim({text})"), Kind::Text),
                ("toUpperCase()", format!("upper({text})"), Kind::Text),
                ("toLowerCase()", format!("lower({text})"), Kind::Text),
                ("length()", format!("len({text})"), Kind::Number),
                ("length", format!("len({text})"), Kind::Number),
                ("size()", format!("len({text})"), Kind::Number),
                ("isEmpty()", format!("len({text}) == 0"), Kind::Truth),
            ];
            if let Some((_, text, kind)) = without.iter().find(|(name, _, _)| self.takes(name)) {
                value = Value::new(text.clone(), *kind);
                continue;
            }
            const OF_ONE: [&str; 6] =
                ["equalsIgnoreCase(", "equals(", "contains(", "startsWith(", "endsWith(", "concat("];
            if let Some(name) = OF_ONE.iter().find(|name| self.takes(name)) {
                let other = self.closed()?.expr.text;
                let (made, kind) = match *name {
                    "equalsIgnoreCase(" => (format!("lower({text}) == lower({other})"), Kind::Truth),
                    "equals(" => (format!("{text} == {other}"), Kind::Truth),
                    "contains(" => (format!("contains({text}, {other})"), Kind::Truth),
                    "startsWith(" => (format!("starts_with({text}, {other})"), Kind::Truth),
                    "endsWith(" => (format!("ends_with({text}, {other})"), Kind::Truth),
                    _ => (format!("concat({text}, {other})"), Kind::Text),
                };
                value = Value::new(made, kind);
                continue;
            }
            if self.takes("replace(") {
                let old = self.ternary()?;
                if !self.takes(",") {
                    return None;
                }
                let new = self.closed()?;
                value =
                    Value::new(format!("replace({text}, {}, {})", old.expr.text, new.expr.text), Kind::Text);
                continue;
            }
            return None;
        }
    }
}

/// Where the `}` of a hole at the begin ends.
fn hole_end(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, found) in text.char_indices() {
        match found {
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
