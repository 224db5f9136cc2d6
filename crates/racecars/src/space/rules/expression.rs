//! Conditions and constraints on encoded points.
//!
//! A statement is true, false, or unknown where it depends on an inactive coordinate (Kleene's logic: "true
//! or unknown" is true). A false one has a violation, by how much its numbers are apart, which leads a search
//! for points that satisfy it.

use super::super::{Axis, Domain, Entry, Value};
use super::syntax::{Tree, parse};
use std::collections::BTreeSet;

/// How two numbers compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Relation {
    /// The relation that holds just where this one does not.
    fn negated(self) -> Self {
        match self {
            Relation::Less => Relation::GreaterOrEqual,
            Relation::LessOrEqual => Relation::Greater,
            Relation::Greater => Relation::LessOrEqual,
            Relation::GreaterOrEqual => Relation::Less,
            Relation::Equal => Relation::NotEqual,
            Relation::NotEqual => Relation::Equal,
        }
    }

    /// 0 if the relation holds, and otherwise a positive number that grows with the distance.
    fn violation(self, left: f64, right: f64) -> f64 {
        let distance = (left - right).abs().max(f64::MIN_POSITIVE);
        // Sums of decimal fractions are equal up to rounding.
        let is_equal = distance <= (1e-12 * left.abs().max(right.abs())).max(f64::MIN_POSITIVE);
        let holds = match self {
            Relation::Less => left < right,
            Relation::LessOrEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterOrEqual => left >= right,
            Relation::Equal => is_equal,
            Relation::NotEqual => !is_equal,
        };
        match holds {
            true => 0.0,
            // NaN, as of 0 / 0, satisfies nothing.
            false if distance.is_nan() => f64::MAX,
            false => distance,
        }
    }
}

/// A number that depends on a point.
#[derive(Debug, Clone, PartialEq)]
enum Number {
    Constant(f64),
    /// The value of a coordinate.
    Coordinate {
        entry: usize,
        index: usize,
    },
    /// The code of a coordinate: of levels, the position.
    Position {
        entry: usize,
        index: usize,
    },
    Negative(Box<Number>),
    Arithmetic(char, Box<Number>, Box<Number>),
    Function(Function, Vec<Number>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    Abs,
    Sqrt,
    Exp,
    Log,
    Min,
    Max,
    Sum,
}

impl Function {
    const NAMES: [(&str, Function); 7] = [
        ("abs", Function::Abs),
        ("sqrt", Function::Sqrt),
        ("exp", Function::Exp),
        ("log", Function::Log),
        ("min", Function::Min),
        ("max", Function::Max),
        ("sum", Function::Sum),
    ];

    fn takes_many(self) -> bool {
        matches!(self, Function::Min | Function::Max | Function::Sum)
    }
}

/// A statement about a point. Negations are part of relations and memberships.
#[derive(Debug, Clone, PartialEq)]
enum Statement {
    Constant(bool),
    Compare(Relation, Number, Number),
    /// Whether the code of a coordinate is among these.
    Member {
        entry: usize,
        index: usize,
        codes: Vec<f64>,
        is_negated: bool,
    },
    /// Whether two coordinates have the same value.
    Same {
        left: (usize, usize),
        right: (usize, usize),
        is_negated: bool,
    },
    All(Vec<Statement>),
    Any(Vec<Statement>),
}

/// What a statement refers to.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) point: &'a [f64],
    /// Whether each entry is active.
    pub(super) active: &'a [bool],
}

impl Number {
    /// `None` if it depends on an inactive coordinate.
    fn value(&self, view: View<'_>) -> Option<f64> {
        match self {
            Number::Constant(x) => Some(*x),
            Number::Coordinate { entry, index } if view.active[*entry] => {
                let (domain, code) = (&view.entries[*entry].domain, view.point[*index]);
                if domain.is_plain() { Some(code) } else { domain.decode(code).as_real() }
            }
            Number::Position { entry, index } if view.active[*entry] => Some(view.point[*index]),
            Number::Coordinate { .. } | Number::Position { .. } => None,
            Number::Negative(number) => Some(-number.value(view)?),
            Number::Arithmetic(operator, left, right) => {
                let (left, right) = (left.value(view)?, right.value(view)?);
                Some(match operator {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    '/' => left / right,
                    _ => left.powf(right),
                })
            }
            Number::Function(function, arguments) => {
                let mut values = arguments.iter().map(|argument| argument.value(view));
                let first = values.next()??;
                Some(match function {
                    Function::Abs => first.abs(),
                    Function::Sqrt => first.sqrt(),
                    Function::Exp => first.exp(),
                    Function::Log => first.ln(),
                    Function::Min => values.try_fold(first, |a, b| Some(a.min(b?)))?,
                    Function::Max => values.try_fold(first, |a, b| Some(a.max(b?)))?,
                    Function::Sum => values.try_fold(first, |a, b| Some(a + b?))?,
                })
            }
        }
    }

    /// Adds the entries that this number depends on.
    fn collect(&self, found: &mut BTreeSet<usize>) {
        match self {
            Number::Constant(_) => {}
            Number::Coordinate { entry, .. } | Number::Position { entry, .. } => {
                found.insert(*entry);
            }
            Number::Negative(number) => number.collect(found),
            Number::Arithmetic(_, left, right) => {
                left.collect(found);
                right.collect(found);
            }
            Number::Function(_, arguments) => arguments.iter().for_each(|a| a.collect(found)),
        }
    }
}

impl Statement {
    /// 0 if it is true, positive if it is false, `None` if it is unknown.
    fn violation(&self, view: View<'_>) -> Option<f64> {
        match self {
            Statement::Constant(holds) => Some(if *holds { 0.0 } else { 1.0 }),
            Statement::Compare(relation, left, right) => {
                Some(relation.violation(left.value(view)?, right.value(view)?))
            }
            Statement::Member { entry, index, codes, is_negated } => {
                let is_member = codes.contains(&view.point[*index]);
                view.active[*entry].then_some(if is_member != *is_negated { 0.0 } else { 1.0 })
            }
            Statement::Same { left, right, is_negated } => {
                if !(view.active[left.0] && view.active[right.0]) {
                    return None;
                }
                let value = |(entry, index): (usize, usize)| -> Value {
                    view.entries[entry].domain.decode(view.point[index])
                };
                let (left, right) = (value(*left), value(*right));
                let is_same = left.identity() == right.identity();
                Some(if is_same != *is_negated { 0.0 } else { 1.0 })
            }
            Statement::All(parts) => {
                let (mut sum, mut is_known) = (0.0, true);
                for part in parts {
                    match part.violation(view) {
                        Some(violation) => sum += violation,
                        None => is_known = false,
                    }
                }
                (sum > 0.0 || is_known).then_some(sum)
            }
            Statement::Any(parts) => {
                let (mut least, mut is_known) = (f64::INFINITY, true);
                for part in parts {
                    match part.violation(view) {
                        Some(0.0) => return Some(0.0),
                        Some(violation) => least = least.min(violation),
                        None => is_known = false,
                    }
                }
                is_known.then_some(least)
            }
        }
    }

    fn collect(&self, found: &mut BTreeSet<usize>) {
        match self {
            Statement::Constant(_) => {}
            Statement::Compare(_, left, right) => {
                left.collect(found);
                right.collect(found);
            }
            Statement::Member { entry, .. } => {
                found.insert(*entry);
            }
            Statement::Same { left, right, .. } => found.extend([left.0, right.0]),
            Statement::All(parts) | Statement::Any(parts) => {
                parts.iter().for_each(|part| part.collect(found));
            }
        }
    }
}

/// A condition or constraint: its text, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression {
    pub(super) text: String,
    statement: Statement,
    /// The entries that it depends on, in ascending order.
    pub(super) entries: Vec<usize>,
}

impl Expression {
    /// Reads an expression over these entries. The error says what is wrong and what is allowed.
    pub(super) fn new(text: &str, entries: &[Entry]) -> Result<Self, String> {
        let text = text.trim();
        let statement = Names { entries }.statement(&parse(text)?, false)?;
        let mut found = BTreeSet::new();
        statement.collect(&mut found);
        Ok(Expression { text: text.to_string(), statement, entries: found.into_iter().collect() })
    }

    /// 0 if it is true, positive if it is false, `None` if it depends on an inactive coordinate.
    pub(super) fn violation(&self, view: View<'_>) -> Option<f64> {
        self.statement.violation(view)
    }
}

/// Looks names up while a tree becomes a statement.
struct Names<'a> {
    entries: &'a [Entry],
}

/// A side of a comparison.
enum Side {
    Number(Number),
    /// A coordinate whose values are not numbers.
    Choice {
        entry: usize,
        index: usize,
    },
    Text(String),
    Boolean(bool),
}

impl Names<'_> {
    fn statement(&self, tree: &Tree, is_negated: bool) -> Result<Statement, String> {
        match tree {
            Tree::Not(inside) => self.statement(inside, !is_negated),
            // De Morgan.
            Tree::All(parts) if is_negated => Ok(Statement::Any(self.parts(parts, true)?)),
            Tree::Any(parts) if is_negated => Ok(Statement::All(self.parts(parts, true)?)),
            Tree::All(parts) => Ok(Statement::All(self.parts(parts, false)?)),
            Tree::Any(parts) => Ok(Statement::Any(self.parts(parts, false)?)),
            Tree::Compare(relation, left, right) => {
                let relation = if is_negated { relation.negated() } else { *relation };
                self.comparison(relation, self.side(left)?, self.side(right)?)
            }
            Tree::In(left, items) => {
                let relation = if is_negated { Relation::NotEqual } else { Relation::Equal };
                let compare =
                    |item: &Tree| self.comparison(relation, self.side(left)?, self.side(item)?);
                let parts = items.iter().map(compare).collect::<Result<Vec<_>, String>>()?;
                Ok(if is_negated { Statement::All(parts) } else { Statement::Any(parts) })
            }
            other => match self.side(other)? {
                Side::Boolean(holds) => Ok(Statement::Constant(holds != is_negated)),
                Side::Choice { entry, index }
                    if matches!(self.entries[entry].domain, Domain::Boolean) =>
                {
                    Ok(Statement::Member { entry, index, codes: vec![1.0], is_negated })
                }
                _ => Err("a comparison, `in` or a boolean is expected".to_string()),
            },
        }
    }

    fn parts(&self, parts: &[Tree], is_negated: bool) -> Result<Vec<Statement>, String> {
        parts.iter().map(|part| self.statement(part, is_negated)).collect()
    }

    fn comparison(&self, relation: Relation, left: Side, right: Side) -> Result<Statement, String> {
        use Relation::{Equal, NotEqual};
        match (left, right) {
            (Side::Number(left), Side::Number(right)) => {
                let statement = Statement::Compare(relation, left, right);
                if relation == Equal {
                    self.refuse_equal_reals(&statement)?;
                }
                Ok(statement)
            }
            (Side::Choice { entry, index }, Side::Text(text)) => {
                self.choice(relation, entry, index, &Value::Text(text))
            }
            (Side::Choice { entry, index }, Side::Boolean(flag)) => {
                self.choice(relation, entry, index, &Value::Boolean(flag))
            }
            (side @ (Side::Text(_) | Side::Boolean(_)), choice @ Side::Choice { .. }) => {
                let turned = match relation {
                    Relation::Less => Relation::Greater,
                    Relation::LessOrEqual => Relation::GreaterOrEqual,
                    Relation::Greater => Relation::Less,
                    Relation::GreaterOrEqual => Relation::LessOrEqual,
                    symmetric => symmetric,
                };
                self.comparison(turned, choice, side)
            }
            (Side::Choice { entry, index }, Side::Choice { entry: other, index: place }) => {
                let (left, right) = (&self.entries[entry].domain, &self.entries[other].domain);
                match relation {
                    Equal | NotEqual => Ok(Statement::Same {
                        left: (entry, index),
                        right: (other, place),
                        is_negated: relation == NotEqual,
                    }),
                    _ if matches!(left, Domain::Levels(_)) && left == right => {
                        Ok(Statement::Compare(
                            relation,
                            Number::Position { entry, index },
                            Number::Position { entry: other, index: place },
                        ))
                    }
                    _ => Err(format!(
                        "`{}` and `{}` have no common order; they can be compared with = and !=",
                        self.entries[entry].name, self.entries[other].name
                    )),
                }
            }
            (Side::Choice { entry, .. }, Side::Number(_))
            | (Side::Number(_), Side::Choice { entry, .. }) => Err(format!(
                "the values of `{}` are not numbers; texts of digits are in quotes",
                self.entries[entry].name
            )),
            (Side::Text(text), _) | (_, Side::Text(text)) => Err(self.unknown(&text)),
            (Side::Boolean(flag), _) | (_, Side::Boolean(flag)) => {
                Err(format!("{flag} is compared with what is not a boolean"))
            }
        }
    }

    /// Two reals that are drawn are never equal.
    fn refuse_equal_reals(&self, statement: &Statement) -> Result<(), String> {
        let mut found = BTreeSet::new();
        statement.collect(&mut found);
        let is_real = |&entry: &usize| matches!(self.entries[entry].axis, Axis::Continuous { .. });
        match found.into_iter().find(is_real) {
            None => Ok(()),
            Some(entry) => Err(format!(
                "`{}` is real, and no real is drawn that equals another number; use <= or >=, or a \
                 simplex for shares of a whole",
                self.entries[entry].name
            )),
        }
    }

    /// The comparison of a choice with one of its values.
    fn choice(
        &self,
        relation: Relation,
        entry: usize,
        index: usize,
        value: &Value,
    ) -> Result<Statement, String> {
        let Entry { name, domain, .. } = &self.entries[entry];
        let code = domain.encode(value).map_err(|what| format!("`{name}`: {what}"))?;
        match relation {
            Relation::Equal | Relation::NotEqual => Ok(Statement::Member {
                entry,
                index,
                codes: vec![code],
                is_negated: relation == Relation::NotEqual,
            }),
            _ if matches!(domain, Domain::Levels(_)) => Ok(Statement::Compare(
                relation,
                Number::Position { entry, index },
                Number::Constant(code),
            )),
            _ => Err(format!("the values of `{name}` have no order; compare with = or !=")),
        }
    }

    fn side(&self, tree: &Tree) -> Result<Side, String> {
        match tree {
            Tree::Text(text) => Ok(Side::Text(text.clone())),
            Tree::Word(word) => match self.find(word) {
                Some(entry) => self.coordinate(entry, None),
                None => match word.as_str() {
                    "true" => Ok(Side::Boolean(true)),
                    "false" => Ok(Side::Boolean(false)),
                    _ => Ok(Side::Text(word.clone())),
                },
            },
            Tree::Name(name) => {
                let entry = self.find(name).ok_or_else(|| self.unknown(name))?;
                self.coordinate(entry, None)
            }
            Tree::Element(name, place) => {
                let entry = self.find(name).ok_or_else(|| self.unknown(name))?;
                self.coordinate(entry, Some(*place))
            }
            Tree::Number(_) | Tree::Negative(_) | Tree::Arithmetic(..) | Tree::Call(..) => {
                Ok(Side::Number(self.number(tree)?))
            }
            _ => Err("a statement stands where a value is expected".to_string()),
        }
    }

    fn number(&self, tree: &Tree) -> Result<Number, String> {
        match tree {
            Tree::Number(x) => Ok(Number::Constant(*x)),
            Tree::Negative(inside) => Ok(Number::Negative(Box::new(self.number(inside)?))),
            Tree::Arithmetic(operator, left, right) => Ok(Number::Arithmetic(
                *operator,
                Box::new(self.number(left)?),
                Box::new(self.number(right)?),
            )),
            Tree::Call(name, arguments) => self.call(name, arguments),
            other => match self.side(other)? {
                Side::Number(number) => Ok(number),
                Side::Choice { entry, .. } => {
                    Err(format!("`{}` is not a number", self.entries[entry].name))
                }
                Side::Text(text) => Err(self.unknown(&text)),
                Side::Boolean(flag) => Err(format!("{flag} is not a number")),
            },
        }
    }

    fn call(&self, name: &str, arguments: &[Tree]) -> Result<Number, String> {
        let known = Function::NAMES.iter().find(|(known, _)| *known == name);
        let Some(&(_, function)) = known else {
            let names: Vec<&str> = Function::NAMES.iter().map(|(name, _)| *name).collect();
            return Err(format!("`{name}` is not a function; there are {}", names.join(", ")));
        };
        if !function.takes_many() && arguments.len() != 1 {
            return Err(format!("`{name}` takes one argument, not {}", arguments.len()));
        }
        let mut numbers = Vec::new();
        for argument in arguments {
            // An array stands for all its coordinates.
            let array = match argument {
                Tree::Word(word) | Tree::Name(word) if function.takes_many() => {
                    self.find(word).filter(|&entry| self.entries[entry].count.is_some())
                }
                _ => None,
            };
            match array {
                None => numbers.push(self.number(argument)?),
                Some(entry) => {
                    for place in 0..self.entries[entry].range().len() {
                        match self.coordinate(entry, Some(place))? {
                            Side::Number(number) => numbers.push(number),
                            _ => {
                                let name = &self.entries[entry].name;
                                return Err(format!("`{name}` does not hold numbers"));
                            }
                        }
                    }
                }
            }
        }
        Ok(Number::Function(function, numbers))
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    fn coordinate(&self, entry: usize, place: Option<usize>) -> Result<Side, String> {
        let Entry { name, domain, offset, count, .. } = &self.entries[entry];
        let index = match (place, count) {
            (None, None) => *offset,
            (Some(place), Some(count)) if place < *count => offset + place,
            (Some(_), None) => return Err(format!("`{name}` is not an array")),
            (Some(place), Some(count)) => {
                return Err(format!("`{name}` has the indices 0 to {}, not {place}", count - 1));
            }
            (None, Some(_)) => {
                return Err(format!(
                    "`{name}` is an array: name one of its coordinates, as in {name}[0], or sum({name})"
                ));
            }
        };
        let is_number = match domain {
            Domain::Levels(values) | Domain::Categorical(values) => {
                values.iter().all(|value| value.as_real().is_some())
            }
            Domain::Boolean => false,
            _ => true,
        };
        Ok(match is_number {
            true => Side::Number(Number::Coordinate { entry, index }),
            false => Side::Choice { entry, index },
        })
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.entries.iter().take(20).map(|e| e.name.as_str()).collect();
        let more = if self.entries.len() > names.len() { ", ..." } else { "" };
        format!(
            "`{name}` is neither a name nor a value of a name it is compared with; there are {}{more}. Texts \
             with other characters than letters, digits, `_` and `.` are in quotes, such names in backticks",
            names.join(", ")
        )
    }
}
