//! From text to tree. Reports every unknown name in an expression, but only the first mistake in its grammar.

use super::digest::DigestForm;
use super::error::ExprError;
use super::eval::{Function, Number, constant_failure, constant_value};
use super::function;
use super::node::{Node, Operator};

/// Deepest nesting of an expression.
const DEPTH_MAX: usize = 64;
/// Most operators of an expression; a long chain of them is a deep tree, too.
const OPERATORS_MAX: usize = 400;

/// What names stand for; asked while parsing.
pub(crate) trait Names {
    /// A variable or setting.
    fn variable(&mut self, name: &str) -> Result<Node, String>;
    /// A shared counter.
    fn counter(&mut self, name: &str) -> Result<usize, String>;
    /// Keys: their index, and how many numbers there can be.
    fn keys(&mut self, name: &str) -> Result<(usize, u64), String> {
        Err(format!("no keys can be used here: {name}"))
    }
    /// A column of a feeder's next row.
    fn feeder(&mut self, name: &str, column: Option<&str>) -> Result<Node, String>;
    /// An environment variable; none where it is not set and there is a default, which is handed in.
    fn environment(&mut self, name: &str, default: Option<&Node>) -> Result<Option<String>, String>;
    /// What a file holds.
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("no file can be read here: {name}"))
    }
}

/// For expressions that may name nothing.
pub(crate) struct NoNames;

impl Names for NoNames {
    fn variable(&mut self, name: &str) -> Result<Node, String> {
        Err(format!("unknown name \"{name}\""))
    }

    fn counter(&mut self, _: &str) -> Result<usize, String> {
        Err("no counter can be used here".into())
    }

    fn feeder(&mut self, _: &str, _: Option<&str>) -> Result<Node, String> {
        Err("no feeder can be used here".into())
    }

    fn environment(&mut self, _: &str, _: Option<&Node>) -> Result<Option<String>, String> {
        Err("no environment variable can be used here".into())
    }
}

/// Parses a whole expression.
pub(crate) fn parse(text: &str, names: &mut dyn Names) -> Result<Node, Vec<ExprError>> {
    let mut parser = Parser { text, at: 0, depth: 0, operators: 0, names, mistakes: Vec::new() };
    match parser.expression_to_end() {
        Ok(node) if parser.mistakes.is_empty() => Ok(node),
        Ok(_) => Err(parser.mistakes),
        Err(mistake) => {
            parser.mistakes.push(mistake);
            Err(parser.mistakes)
        }
    }
}

/// Whether a text can be a name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(begins_name)
        && bytes.all(|byte| begins_name(byte) || byte.is_ascii_digit())
        && !RESERVED.contains(&text)
}

/// Words that are part of the language of expressions.
pub(crate) const RESERVED: [&str; 7] = ["and", "or", "not", "true", "false", "missing", "in"];

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

struct Parser<'t, 'n> {
    text: &'t str,
    at: usize,
    depth: usize,
    operators: usize,
    names: &'n mut dyn Names,
    mistakes: Vec<ExprError>,
}

type Parsed<T> = Result<T, ExprError>;

/// Operators of each level of binding, loosest first; a longer spelling before a shorter one.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

impl<'t> Parser<'t, '_> {
    fn expression_to_end(&mut self) -> Parsed<Node> {
        let node = self.level(0)?;
        self.skip_space();
        if self.at == self.text.len() {
            return Ok(node);
        }
        let rest = &self.text[self.at..];
        let hints =
            [("&&", "write and"), ("||", "write or"), ("=", "write == to compare"), ("?", "write if(…)")];
        let hint = hints.iter().find(|(found, _)| rest.starts_with(found));
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let found = &rest[..end];
        Err(self.mistake(
            self.at,
            found.len(),
            match hint {
                Some((_, hint)) => format!("unexpected \"{found}\"; {hint}"),
                None => format!("unexpected \"{found}\"; expected an operator or the end of the expression"),
            },
        ))
    }

    fn level(&mut self, level: usize) -> Parsed<Node> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let negated = level == 2 && self.word("not");
        if negated {
            let inner = self.deeper(|parser| parser.level(2))?;
            return Ok(fold_unary(Node::Not(Box::new(inner))));
        }
        let known_mistakes = self.mistakes.len();
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            self.count_operator()?;
            self.skip_space();
            let start = self.at;
            let right = self.level(level + 1)?;
            if matches!(operator, Operator::Divide | Operator::Remainder) && is_zero(&right) {
                let length = self.text[start..self.at].trim_end().len();
                self.report(start, length, "this is always 0: a division by zero".into());
            }
            left = fold_binary(operator, left, right);
            if let Some(reason) = constant_failure_of(&left).filter(|_| self.mistakes.len() == known_mistakes)
            {
                let length = self.text[start..self.at].trim_end().len();
                self.report(start, length, reason.into());
            }
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[(&str, Operator)]) -> Option<Operator> {
        self.skip_space();
        for (spelling, operator) in operators {
            let found =
                if begins_name(spelling.as_bytes()[0]) { self.word(spelling) } else { self.symbol(spelling) };
            if found {
                return Some(*operator);
            }
        }
        None
    }

    fn unary(&mut self) -> Parsed<Node> {
        self.skip_space();
        let start = self.at;
        if self.symbol("-") {
            let inner = self.deeper(Self::unary)?;
            return Ok(match inner {
                Node::Int(value) => Node::Int(value.wrapping_neg()),
                Node::Real(value) => Node::Real(-value),
                inner => Node::Negate(Box::new(inner)),
            });
        }
        if self.symbol("!") {
            return Err(self.mistake(start, 1, "unexpected \"!\"; write not".into()));
        }
        let mut node = self.primary()?;
        while self.symbol("[") {
            self.count_operator()?;
            let index = self.deeper(|parser| parser.level(0))?;
            self.expect("]", "the closing ] of an index")?;
            node = Node::Item(Box::new([node, index]));
        }
        Ok(node)
    }

    fn primary(&mut self) -> Parsed<Node> {
        self.skip_space();
        let start = self.at;
        let Some(byte) = self.text.as_bytes().get(start).copied() else {
            return Err(self.mistake(start, 1, "the expression ends too early; expected a value".into()));
        };
        if byte.is_ascii_digit() {
            return self.number();
        }
        if byte == b'"' || byte == b'\'' {
            return self.quoted(byte);
        }
        if self.symbol("(") {
            let inner = self.deeper(|parser| parser.level(0))?;
            self.expect(")", "a closing parenthesis")?;
            return Ok(inner);
        }
        let name = self.name();
        match name {
            "" => {
                let found = self.text[start..].chars().next().unwrap_or(' ');
                Err(self.mistake(
                    start,
                    found.len_utf8(),
                    format!("unexpected \"{found}\"; expected a value"),
                ))
            }
            "true" => Ok(Node::Bool(true)),
            "false" => Ok(Node::Bool(false)),
            "missing" => Ok(Node::Missing),
            "and" | "or" | "not" | "in" => {
                Err(self.mistake(start, name.len(), format!("unexpected \"{name}\"; expected a value")))
            }
            _ if self.symbol("(") => self.call(start, name),
            _ => Ok(self.resolved(start, name.len(), |names| names.variable(name))),
        }
    }

    fn call(&mut self, start: usize, name: &'t str) -> Parsed<Node> {
        match name {
            "inserted" | "latest" => return self.keys_call(name),
            "count" | "next" => return self.naming_call(start, name),
            "env" => return self.environment(),
            "file" => return self.file(),
            _ => {}
        }
        let function = function::find(name);
        let known_mistakes = self.mistakes.len();
        if function.is_none() {
            let hint = crate::diagnostic::did_you_mean(name, function::names());
            self.report(start, name.len(), format!("unknown function \"{name}\"{hint}"));
        }
        let mut arguments = Vec::new();
        let mut starts = Vec::new();
        if !self.symbol(")") {
            loop {
                self.skip_space();
                starts.push(self.at);
                arguments.push(self.deeper(|parser| parser.level(0))?);
                if self.symbol(")") {
                    break;
                }
                self.expect(",", "a comma or a closing parenthesis")?;
            }
        }
        let Some(function) = function else {
            // Perhaps it was meant to take a name, which is no variable; one mistake is enough.
            self.mistakes.truncate(known_mistakes + 1);
            return Ok(Node::Missing);
        };
        if !self.check_call(start, function, &arguments, &starts) {
            return Ok(Node::Missing);
        }
        Ok(function::fold(function, arguments.into_boxed_slice()))
    }

    /// Whether a call can be evaluated: functions count on having as many values as they ask for.
    fn check_call(
        &mut self,
        start: usize,
        function: &Function,
        arguments: &[Node],
        starts: &[usize],
    ) -> bool {
        let allowed = function.arguments_min..=function.arguments_max;
        if !allowed.contains(&arguments.len()) {
            let (given, Function { name, usage, about, .. }) = (arguments.len(), function);
            let values = if given == 1 { "value" } else { "values" };
            let reason = format!("{name} is called with {given} {values}; {usage} gives {about}");
            self.report(start, function.name.len(), reason);
            return false;
        }
        if function.name == "weighted" && arguments.len() % 2 == 1 {
            let reason = "each value needs a weight behind it".to_owned();
            self.report(start, function.name.len(), reason);
            return false;
        }
        if let ("date" | "epoch_ms", Some(Node::Text(format))) = (function.name, arguments.get(1))
            && let Some(problem) = super::date::format_problem(format)
        {
            self.report(starts[1], format.len(), format!("bad date format: {problem}"));
        }
        for (index, reason) in function::never_right(function.name, arguments) {
            let length = self.text[starts[index]..].find([',', ')']).unwrap_or(1);
            self.report(starts[index], length, reason.to_owned());
        }
        if let "sha256" | "hmac" = function.name
            && let Some(Node::Text(form)) = arguments.get(function.arguments_max - 1)
            && DigestForm::read(form).is_none()
        {
            let reason = format!("a digest is written as {}", DigestForm::NAMES.join(", "));
            self.report(starts[function.arguments_max - 1], form.len(), reason);
        }
        true
    }

    /// `count(NAME)`, `next(FEEDER)`, `next(FEEDER, COLUMN)`.
    fn naming_call(&mut self, start: usize, function: &str) -> Parsed<Node> {
        let (at, name) = self.bare_name()?;
        if function == "count" {
            self.expect(")", "a closing parenthesis")?;
            return Ok(self.resolved(at, name.len(), |names| names.counter(name).map(Node::Count)));
        }
        let column = if self.symbol(",") { Some(self.bare_name()?) } else { None };
        self.expect(")", "a closing parenthesis")?;
        let length = self.at - start;
        Ok(self.resolved(start, length, |names| names.feeder(name, column.map(|(_, column)| column))))
    }

    /// `inserted(KEYS)`, `latest(KEYS)`, `latest(KEYS, exponent)`.
    fn keys_call(&mut self, function: &str) -> Parsed<Node> {
        let (at, name) = self.bare_name()?;
        let takes_more = function == "latest" && self.symbol(",");
        let exponent = if takes_more { Some(self.deeper(|parser| parser.level(0))?) } else { None };
        self.expect(")", "a closing parenthesis")?;
        Ok(self.resolved(at, name.len(), |names| {
            let (keys, most) = names.keys(name)?;
            match function {
                "inserted" => Ok(Node::Inserted(keys)),
                _ => function::latest(keys, most, exponent.as_ref()),
            }
        }))
    }

    /// `env(NAME)`, `env("NAME", default)`: read now, once for the whole run.
    fn environment(&mut self) -> Parsed<Node> {
        self.skip_space();
        let at = self.at;
        let name = match self.quoted_name()? {
            Some(name) => name,
            None => self.bare_name()?.1.to_owned(),
        };
        let length = self.at - at;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(self.mistake(at, length, "expected the name of an environment variable".into()));
        }
        let default = if self.symbol(",") { Some(self.deeper(|parser| parser.level(0))?) } else { None };
        self.expect(")", "a closing parenthesis")?;
        let found = self.names.environment(&name, default.as_ref());
        Ok(match found {
            Ok(Some(value)) => Node::Text(value.into_bytes().into_boxed_slice()),
            Ok(None) => default.unwrap_or(Node::Missing),
            Err(reason) => {
                self.report(at, length, reason);
                Node::Missing
            }
        })
    }

    /// `file('PATH')`: read now, once for the whole run.
    fn file(&mut self) -> Parsed<Node> {
        self.skip_space();
        let at = self.at;
        let name = self.quoted_name()?.unwrap_or_default();
        let length = self.at - at;
        if name.is_empty() || name.contains('\0') {
            let reason = "expected the path of a file in quotes, relative to the scenario".into();
            return Err(self.mistake(at, length, reason));
        }
        self.expect(")", "a closing parenthesis")?;
        Ok(self.resolved(at, length, |names| {
            names.file(&name).map(|bytes| Node::Text(bytes.into_boxed_slice()))
        }))
    }

    /// A name in quotes; none where no quote stands there.
    fn quoted_name(&mut self) -> Parsed<Option<String>> {
        let mark = self.text.as_bytes().get(self.at).copied().filter(|byte| matches!(byte, b'"' | b'\''));
        Ok(match mark.map(|mark| self.quoted(mark)).transpose()? {
            Some(Node::Text(name)) => Some(String::from_utf8_lossy(&name).into_owned()),
            _ => None,
        })
    }

    fn bare_name(&mut self) -> Parsed<(usize, &'t str)> {
        self.skip_space();
        let at = self.at;
        match self.name() {
            "" => Err(self.mistake(at, 1, "expected a name".into())),
            name => Ok((at, name)),
        }
    }

    fn resolved(
        &mut self,
        at: usize,
        length: usize,
        resolve: impl FnOnce(&mut dyn Names) -> Result<Node, String>,
    ) -> Node {
        resolve(self.names).unwrap_or_else(|reason| {
            self.report(at, length, reason);
            Node::Missing
        })
    }

    fn number(&mut self) -> Parsed<Node> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        self.at = digits(start);
        let mut is_real = false;
        if bytes.get(self.at) == Some(&b'.') && bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.at = digits(self.at + 1);
            is_real = true;
        }
        if bytes.get(self.at).copied().is_some_and(begins_name) {
            let end = self.at + self.name().len();
            let reason = format!("\"{}\" is neither a number nor a name", &self.text[start..self.at]);
            return Err(self.mistake(start, end.min(self.text.len()) - start, reason));
        }
        let text = &self.text[start..self.at];
        let whole = if is_real { None } else { text.parse().ok().map(Node::Int) };
        match whole.or_else(|| text.parse().ok().map(Node::Real)) {
            Some(node) => Ok(node),
            None => Err(self.mistake(start, text.len(), format!("\"{text}\" is not a number"))),
        }
    }

    fn quoted(&mut self, mark: u8) -> Parsed<Node> {
        let start = self.at;
        let mut out = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((at, found)) = chars.next() {
            match found {
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, other)) => out.push(other),
                    None => break,
                },
                found if found == char::from(mark) => {
                    self.at = start + 1 + at + 1;
                    return Ok(Node::Text(out.into_bytes().into_boxed_slice()));
                }
                found => out.push(found),
            }
        }
        Err(self.mistake(start, 1, "the text that begins here has no closing quote".into()))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.mistake(
                self.at,
                1,
                format!("nested more than {DEPTH_MAX} deep; use variables"),
            ));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn count_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            let reason = format!("this expression has more than {OPERATORS_MAX} operators; use variables");
            return Err(self.mistake(self.at, 1, reason));
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn name(&mut self) -> &'t str {
        let start = self.at;
        let rest = self.text[start..].bytes();
        self.at += rest.take_while(|byte| begins_name(*byte) || byte.is_ascii_digit()).count();
        &self.text[start..self.at]
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip_space();
        let start = self.at;
        let found = self.name() == word;
        if !found {
            self.at = start;
        }
        found
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    fn expect(&mut self, symbol: &str, what: &str) -> Parsed<()> {
        if self.symbol(symbol) {
            return Ok(());
        }
        let found = self.text[self.at..].chars().next();
        let length = found.map_or(1, char::len_utf8);
        Err(self.mistake(
            self.at,
            length,
            match found {
                Some(found) => format!("expected {what}, found \"{found}\""),
                None => format!("the expression ends too early; expected {what}"),
            },
        ))
    }

    fn mistake(&self, offset: usize, length: usize, reason: String) -> ExprError {
        ExprError { offset, length: length.max(1), reason }
    }

    /// Reports one and goes on.
    fn report(&mut self, offset: usize, length: usize, reason: String) {
        self.mistakes.push(self.mistake(offset, length, reason));
    }
}

/// Whether a node is 0, or a text that spells it, every time.
fn is_zero(node: &Node) -> bool {
    match node {
        Node::Int(value) => *value == 0,
        Node::Real(value) => *value == 0.0,
        Node::Text(text) => Number::parse(text).is_some_and(|number| number.as_f64() == 0.0),
        _ => false,
    }
}

/// Why what is made of two constants has no value, where it cannot be computed.
fn constant_failure_of(node: &Node) -> Option<&'static str> {
    match node {
        Node::Binary(_, sides) if sides.iter().all(|side| side.as_literal().is_some()) => {
            constant_failure(node)
        }
        _ => None,
    }
}

fn fold_unary(node: Node) -> Node {
    match &node {
        Node::Not(inner) if inner.as_literal().is_some() => constant_value(&node).unwrap_or(node),
        _ => node,
    }
}

fn fold_binary(operator: Operator, left: Node, right: Node) -> Node {
    let constant = left.as_literal().is_some() && right.as_literal().is_some();
    let node = Node::binary(operator, left, right);
    if constant { constant_value(&node).unwrap_or(node) } else { node }
}
