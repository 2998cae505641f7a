//! Evaluation: a tree walk whose only memory is one buffer for texts made on the way, kept by each thread.

use std::cell::Cell;

use super::choose::scrambled;
use super::function::padded;
use super::node::{Node, Operator};
use crate::context::{Context, Shared};
use crate::encoding::write_real;
use crate::keys::Keys;
use crate::slot::{List, Slot, SlotIndex, Value};

thread_local! {
    /// Texts made while evaluating; taken out for the time of an evaluation, so that it stays warm.
    static MADE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Most bytes of the texts that one evaluation makes, and of the longest of them.
pub(super) const MADE_MAX: usize = 32 << 20;
/// What is wrong beyond that.
pub(super) const TOO_LONG_TEXT: &str = "it is longer than 32 MiB";
/// The same, as why there is no value.
pub(super) const TOO_LONG: Absent = Absent::Failed(TOO_LONG_TEXT);

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// The author says so: `missing`.
    Said,
    /// This variable is not set.
    Unset(SlotIndex),
    /// What it names is not in what there is: an item that a list does not have. A condition takes it as missing.
    Nothing(&'static str),
    /// It cannot be computed, for this reason: also a condition has no value then.
    Failed(&'static str),
}

/// What an evaluation comes to. What has no value has none to whoever needs it, either.
pub(super) type Made<'e> = Result<Got<'e>, Absent>;

/// A value in the middle of an evaluation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Got<'e> {
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Bytes<'e>),
    List(List<'e>),
}

/// A text: somebody else's, or a stretch of the machine's buffer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bytes<'e> {
    Borrowed(&'e [u8]),
    Made(usize, usize),
}

impl Bytes<'_> {
    /// The part from `start` to `end`, both within it.
    pub(super) fn part(self, start: usize, end: usize) -> Self {
        match self {
            Bytes::Borrowed(bytes) => Bytes::Borrowed(&bytes[start..end]),
            Bytes::Made(from, _) => Bytes::Made(from + start, from + end),
        }
    }
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Real(f64),
}

impl Number {
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    /// Rounded towards zero, within the range of whole numbers.
    pub(super) fn as_i64(self) -> i64 {
        match self {
            Number::Int(value) => value,
            Number::Real(value) => value as i64,
        }
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text.trim_ascii()).ok()?;
        // What begins otherwise is no number; most texts are told so by their first byte.
        if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
            return None;
        }
        if let Ok(value) = text.parse() {
            return Some(Number::Int(value));
        }
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Real)
    }
}

/// One function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// How it is called, for a person.
    pub(crate) usage: &'static str,
    /// What it gives.
    pub(crate) about: &'static str,
    pub(crate) arguments_min: usize,
    pub(crate) arguments_max: usize,
    /// Whether the same arguments always give the same value.
    pub(crate) pure: bool,
    pub(super) run: for<'m, 'e> fn(&'m mut Machine<'e>, &'e [Node]) -> Made<'e>,
}

/// Everything that one evaluation needs.
pub(super) struct Machine<'e> {
    pub(super) slots: &'e [Slot],
    pub(super) shared: &'e Shared,
    pub(super) random: &'e mut fastrand::Rng,
    pub(super) epoch_ms: i64,
    pub(super) made: Vec<u8>,
    /// Whether something was left out of it, as it would be too long.
    pub(super) is_full: bool,
}

impl<'e> Machine<'e> {
    /// Sets one up around a context and hands the thread's buffer back afterwards.
    pub(super) fn with<R>(cx: &'e mut Context<'_>, work: impl FnOnce(&mut Machine<'e>) -> R) -> R {
        let mut made = MADE.take();
        made.clear();
        let mut machine = Machine {
            slots: cx.slots,
            shared: cx.shared,
            random: cx.random,
            epoch_ms: cx.epoch_ms,
            made,
            is_full: false,
        };
        let result = work(&mut machine);
        MADE.set(machine.made);
        result
    }

    pub(super) fn eval(&mut self, node: &'e Node) -> Made<'e> {
        Ok(match node {
            Node::Missing => return Err(Absent::Said),
            Node::Bool(value) => Got::Bool(*value),
            Node::Int(value) => Got::Int(*value),
            Node::Real(value) => Got::Real(*value),
            Node::Text(value) => Got::Text(Bytes::Borrowed(value)),
            Node::Variable(slot) => {
                let value = self.slots.get(usize::from(*slot)).map_or(Value::Missing, Slot::value);
                return from_value(value).ok_or(Absent::Unset(*slot));
            }
            Node::Not(inner) => {
                let got = computed(self.eval(inner))?;
                Got::Bool(!self.is_true(&got))
            }
            Node::Negate(inner) => {
                let got = self.eval(inner)?;
                return self.arithmetic(Operator::Subtract, Got::Int(0), got);
            }
            Node::Binary(operator, sides) => return self.binary(*operator, &sides[0], &sides[1]),
            Node::Item(parts) => {
                let list = self.eval(&parts[0])?;
                let index = self.eval(&parts[1])?;
                return self.item(list, index);
            }
            Node::Call(function, arguments) => return (function.run)(self, arguments),
            Node::Count(counter) => Got::Int(self.shared.count(*counter) as i64),
            Node::NextRow(feeder) => Got::Int(self.shared.next_row(*feeder) as i64),
            Node::RandomRow(feeder) => {
                let rows = self.shared.feeders()[*feeder].rows.len().max(1);
                Got::Int(self.random.usize(..rows) as i64)
            }
            Node::Cell { feeder, column, row } => return self.cell(*feeder, *column, row),
            Node::Inserted(keys) => Got::Int(self.shared.keys(*keys).map_or(0, Keys::inserted) as i64),
            Node::Latest { keys, ranks } => match self.shared.keys(*keys).map_or(0, Keys::inserted) {
                0 => return Err(Absent::Nothing("nothing is inserted yet")),
                newest => Got::Int(newest as i64 + 1 - ranks.pick_up_to(newest, self.random)),
            },
            Node::Zipf(_) | Node::Uniform { .. } => {
                return node.drawn(self.random).map(Got::Int).ok_or(NO_NUMBER);
            }
            Node::Pad { inner, width } => {
                let text = argument(self, inner)?;
                return padded(self, text, *width);
            }
            Node::Scrambled { ranks, n } => {
                let n = whole(self, n)?;
                Got::Int(scrambled(ranks.pick(|| self.random.u64(..)), n))
            }
            Node::Rhythm { counter, share_ppb } => {
                Got::Bool(fires(u128::from(self.shared.turn(*counter)), u128::from(*share_ppb)))
            }
            Node::Chance { share_ppb } => Got::Bool(self.random.u64(..PPB) < *share_ppb),
            Node::Exponential { mean } => Got::Real(-mean * (1.0 - self.random.f64()).ln()),
        })
    }

    fn cell(&mut self, feeder: usize, column: usize, row: &'e Node) -> Made<'e> {
        let row = self.eval(row)?;
        let row = self.number(&row).map_or(0, Number::as_i64);
        let rows = &self.shared.feeders()[feeder].rows;
        match usize::try_from(row).ok().and_then(|row| rows.get(row)).and_then(|cells| cells.get(column)) {
            Some(cell) => Ok(Got::Text(Bytes::Borrowed(cell.as_bytes()))),
            None => Err(Absent::Failed("the feeder has no such row")),
        }
    }

    fn binary(&mut self, operator: Operator, left: &'e Node, right: &'e Node) -> Made<'e> {
        use Operator::{Add, And, Divide, Equal, Multiply, NotEqual, Or, Remainder, Subtract};
        let left = computed(self.eval(left))?;
        if operator == And || operator == Or {
            let decided = self.is_true(&left);
            if decided == (operator == Or) {
                return Ok(Got::Bool(decided));
            }
            let right = computed(self.eval(right))?;
            return Ok(Got::Bool(self.is_true(&right)));
        }
        let right = computed(self.eval(right))?;
        Ok(Got::Bool(match operator {
            Add | Subtract | Multiply | Divide | Remainder => {
                return self.arithmetic(operator, needed(left)?, needed(right)?);
            }
            Equal => self.equal(&left, &right),
            NotEqual => !self.equal(&left, &right),
            _ => self.compares(operator, &left, &right),
        }))
    }

    /// Two texts are equal if they are the same, even if both spell numbers: ids may have zeros in front.
    /// Missing equals only missing.
    fn equal(&mut self, left: &Made<'e>, right: &Made<'e>) -> bool {
        match (left, right) {
            (Ok(Got::Text(left)), Ok(Got::Text(right))) => self.bytes(left) == self.bytes(right),
            (Ok(left), Ok(right)) => self.order(left, right) == Some(std::cmp::Ordering::Equal),
            _ => left.is_err() && right.is_err(),
        }
    }

    fn compares(&mut self, operator: Operator, left: &Made<'e>, right: &Made<'e>) -> bool {
        let (Ok(left), Ok(right)) = (left, right) else { return false };
        let Some(order) = self.order(left, right) else { return false };
        match operator {
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            _ => order.is_ge(),
        }
    }

    /// Numbers (and texts that are numbers) by size, everything else as text.
    fn order(&mut self, left: &Got<'e>, right: &Got<'e>) -> Option<std::cmp::Ordering> {
        if let (Some(left), Some(right)) = (self.number(left), self.number(right)) {
            return match (left, right) {
                (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
                _ => left.as_f64().partial_cmp(&right.as_f64()),
            };
        }
        let left = self.textual(*left);
        let right = self.textual(*right);
        Some(self.bytes(&left).cmp(self.bytes(&right)))
    }

    fn arithmetic(&self, operator: Operator, left: Got<'e>, right: Got<'e>) -> Made<'e> {
        let (Some(left), Some(right)) = (self.number(&left), self.number(&right)) else {
            return Err(NO_NUMBER);
        };
        if matches!(operator, Operator::Divide | Operator::Remainder) && right.as_f64() == 0.0 {
            return Err(Absent::Failed("division by zero"));
        }
        if let (Number::Int(left), Number::Int(right)) = (left, right) {
            let whole = match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                Operator::Multiply => left.checked_mul(right),
                Operator::Remainder => left.checked_rem_euclid(right),
                _ if right != 0 && left.checked_rem(right) == Some(0) => left.checked_div(right),
                _ => None,
            };
            if let Some(whole) = whole {
                return Ok(Got::Int(whole));
            }
            if matches!(operator, Operator::Add | Operator::Subtract | Operator::Multiply) {
                return Err(Absent::Failed(TOO_LARGE));
            }
        }
        let (left, right) = (left.as_f64(), right.as_f64());
        let real = match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Remainder => left.rem_euclid(right),
            _ => left / right,
        };
        if real.is_finite() { Ok(Got::Real(real)) } else { Err(Absent::Failed("the number is too large")) }
    }

    /// The item of a list; negative indices count from the end.
    pub(super) fn item(&self, list: Got<'e>, index: Got<'e>) -> Made<'e> {
        let Got::List(list) = list else { return Err(Absent::Failed("there is no list")) };
        let index = self.number(&index).ok_or(NO_NUMBER)?;
        let index = index.as_i64();
        let index = if index < 0 { index.saturating_add(list.len() as i64) } else { index };
        let item = usize::try_from(index).ok().and_then(|index| list.get(index));
        item.map(|item| Got::Text(Bytes::Borrowed(item))).ok_or(Absent::Nothing("the list has no such item"))
    }

    /// The number that a value is or spells.
    pub(super) fn number(&self, got: &Got<'e>) -> Option<Number> {
        match got {
            Got::Int(value) => Some(Number::Int(*value)),
            Got::Real(value) => Some(Number::Real(*value)),
            Got::Text(bytes) => Number::parse(self.bytes(bytes)),
            Got::Bool(_) | Got::List(_) => None,
        }
    }

    pub(super) fn is_true(&self, got: &Made<'e>) -> bool {
        match got {
            Err(_) => false,
            Ok(Got::Bool(value)) => *value,
            Ok(Got::Int(value)) => *value != 0,
            Ok(Got::Real(value)) => *value != 0.0,
            Ok(Got::Text(bytes)) => !matches!(self.bytes(bytes), b"" | b"false" | b"0"),
            Ok(Got::List(list)) => !list.is_empty(),
        }
    }

    /// The bytes of a text.
    pub(super) fn bytes<'s>(&'s self, bytes: &Bytes<'s>) -> &'s [u8] {
        match *bytes {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Made(start, end) => &self.made[start..end],
        }
    }

    /// A value as text: items joined by commas for a list.
    pub(super) fn textual(&mut self, got: Got<'e>) -> Bytes<'e> {
        let start = self.made.len();
        match got {
            Got::Bool(value) => return Bytes::Borrowed(if value { b"true" } else { b"false" }),
            Got::Text(bytes) => return bytes,
            Got::Int(value) => self.made.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Got::Real(value) => write_real(value, &mut self.made),
            Got::List(list) => self.join(list, b","),
        }
        Bytes::Made(start, self.made.len())
    }

    /// Appends a list's items to the buffer.
    pub(super) fn join(&mut self, list: List<'e>, separator: &[u8]) {
        for index in 0..list.len() {
            if index > 0 {
                self.made.extend_from_slice(separator);
            }
            self.append(Bytes::Borrowed(list.get(index).unwrap_or_default()));
        }
    }

    /// Appends a text to the buffer, unless there is no room for it.
    pub(super) fn append(&mut self, bytes: Bytes<'e>) {
        if self.made.len() + self.bytes(&bytes).len() > MADE_MAX {
            self.is_full = true;
            return;
        }
        match bytes {
            Bytes::Borrowed(bytes) => self.made.extend_from_slice(bytes),
            Bytes::Made(start, end) => self.made.extend_from_within(start..end),
        }
    }

    /// The value, borrowed.
    pub(super) fn value<'s>(&'s self, got: &Got<'s>) -> Value<'s> {
        match got {
            Got::Bool(value) => Value::Bool(*value),
            Got::Int(value) => Value::Int(*value),
            Got::Real(value) => Value::Real(*value),
            Got::Text(bytes) => Value::Text(self.bytes(bytes)),
            Got::List(list) => Value::List(*list),
        }
    }

    pub(super) fn store(&self, got: Made<'e>, out: &mut Slot) {
        let Ok(got) = got else { return out.clear() };
        match got {
            Got::Bool(value) => out.set_bool(value),
            Got::Int(value) => out.set_int(value),
            Got::Real(value) => out.set_real(value),
            Got::Text(bytes) => out.set_text(self.bytes(&bytes)),
            Got::List(list) => {
                out.start_list();
                for index in 0..list.len() {
                    out.push_item(list.get(index).unwrap_or_default());
                }
            }
        }
    }
}

/// What is wrong where whole numbers become one that is none any more.
pub(super) const TOO_LARGE: &str = "integer overflow: integers go from -9223372036854775808 to 9223372036854775807; write a number with .0 for a decimal";

/// What is wrong where a number is wanted.
pub(super) const NO_NUMBER_TEXT: &str = "something in it is not a number";
/// The same, as why there is no value.
pub(super) const NO_NUMBER: Absent = Absent::Failed(NO_NUMBER_TEXT);

/// Who needs a number cannot do with none, even where the author says that there is none.
fn needed(made: Made<'_>) -> Made<'_> {
    made.map_err(|absent| match absent {
        Absent::Said => NO_NUMBER,
        Absent::Nothing(reason) => Absent::Failed(reason),
        Absent::Unset(_) | Absent::Failed(_) => absent,
    })
}

/// What a condition looks at may be missing, but what cannot be computed leaves it without a value.
pub(super) fn computed(made: Made<'_>) -> Result<Made<'_>, Absent> {
    match made {
        Err(failed @ Absent::Failed(_)) => Err(failed),
        made => Ok(made),
    }
}

/// An argument as text; what the author calls missing is an empty one.
pub(super) fn argument<'e>(m: &mut Machine<'e>, node: &'e Node) -> Result<Bytes<'e>, Absent> {
    match m.eval(node) {
        Ok(got) => Ok(m.textual(got)),
        Err(Absent::Said) => Ok(Bytes::Borrowed(b"")),
        Err(absent) => Err(absent),
    }
}

/// An argument as a number.
pub(super) fn operand<'e>(m: &mut Machine<'e>, node: &'e Node) -> Result<Number, Absent> {
    let got = needed(m.eval(node))?;
    m.number(&got).ok_or(NO_NUMBER)
}

/// An argument as a whole number.
pub(super) fn whole<'e>(m: &mut Machine<'e>, node: &'e Node) -> Result<i64, Absent> {
    operand(m, node).map(Number::as_i64)
}

/// The value of a node that looks at nothing outside itself, as a literal; none where it has none, or is no literal.
pub(super) fn constant_value(node: &Node) -> Option<Node> {
    of_constant(node, |machine, made| match made {
        Ok(got) => Node::literal(machine.value(&got)),
        Err(Absent::Said) => Some(Node::Missing),
        // it is told where it is needed
        Err(_) => None,
    })
}

/// Why such a node cannot be computed, if so.
pub(super) fn constant_failure(node: &Node) -> Option<&'static str> {
    of_constant(node, |_, made| match made {
        Err(Absent::Failed(reason)) => Some(reason),
        _ => None,
    })
}

fn of_constant<R>(node: &Node, take: impl for<'e> FnOnce(&Machine<'e>, Made<'e>) -> R) -> R {
    let mut random = fastrand::Rng::with_seed(0);
    let shared = Shared::default();
    let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
    Machine::with(&mut cx, |machine| {
        let made = machine.eval(node);
        take(machine, made)
    })
}

fn from_value(value: Value<'_>) -> Option<Got<'_>> {
    Some(match value {
        Value::Missing => return None,
        Value::Bool(value) => Got::Bool(value),
        Value::Int(value) => Got::Int(value),
        Value::Real(value) => Got::Real(value),
        Value::Text(value) => Got::Text(Bytes::Borrowed(value)),
        Value::List(value) => Got::List(value),
    })
}

/// Shares are kept as whole parts per billion, so that the rhythm is exact.
pub(crate) const PPB: u64 = 1_000_000_000;

/// Whether evaluation `index` (from 0) fires, so that after `n` evaluations `share × n - ½`, rounded up, have fired:
/// with a quarter the 3rd, 7th, 11th, …
fn fires(index: u128, share_ppb: u128) -> bool {
    let ppb = u128::from(PPB);
    // ceil(share·n - ½) in whole numbers
    let fired_after = |n: u128| (2 * share_ppb * n + ppb - 1) / (2 * ppb);
    fired_after(index + 1) > fired_after(index)
}
