//! Parameters as people write them: `x=0:10`, `n=1..64`, `lr=1e-5:1e-1:log`, `mode=a,b,c`.

use crate::error::{Error, Result};
use crate::point::NamedPoint;
use racecars::space::Entry;
use racecars::{Domain, Scale, Space, Value, Values};
use std::fmt;
use std::str::FromStr;

/// One parameter, or an array of them: a name and what it may take.
///
/// | text | meaning |
/// |---|---|
/// | `x=0:10` | every number from 0 to 10 |
/// | `lr=1e-5:1e-1:log` | the same, measured by ratios |
/// | `x=0:1:step=0.1` | 0, 0.1, ..., 1 |
/// | `n=1..64` | every integer from 1 to 64 |
/// | `n=1..64:log` | the same, measured by ratios |
/// | `n=0..64:step=8` | 0, 8, ..., 64 |
/// | `mode=a,b,c` | one of these, without an order |
/// | `size=small<medium<large` | one of these, in this order |
/// | `flag=bool` | true or false |
/// | `w[5]=-1:1` | an array of five |
/// | `y=5`, `mode=fast` | always this value: it is passed to the program, and not searched |
///
/// ```
/// use racecars_study::Parameter;
///
/// let rate: Parameter = "lr=1e-5:1e-1:log".parse()?;
/// assert_eq!(rate.name, "lr");
/// assert_eq!(
///     "lr=1e-5-1".parse::<Parameter>().unwrap_err().to_string(),
///     "parameter `lr`: `1e-5-1` is none of low:high, low:high:log, low:high:step=s, low..high, a,b,c, \
///      a<b<c, bool, nor one number or word, which would be a fixed value"
/// );
/// # Ok::<(), racecars_study::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The array's length, or `None` for a single parameter.
    pub count: Option<usize>,
    /// What it may take.
    pub domain: Domain,
}

/// Names that the command has for other things.
pub(crate) const BUILT_IN: [&str; 5] = ["trial", "seed", "dir", "base", "worker"];

impl Parameter {
    /// A parameter from its name, with `[count]` for an array, and its range.
    pub fn new(name: &str, range: &str) -> Result<Parameter> {
        let (name, count) = read_name(name.trim())?;
        let domain = read_domain(&name, range.trim())?;
        let parameter = Parameter { name, count, domain };
        match (parameter.fixed(), count) {
            (Some(value), Some(_)) => Err(Error::setting(format!(
                "parameter `{}`: a fixed value such as {value} is for a single parameter, not for an array",
                parameter.name
            ))),
            _ => Ok(parameter),
        }
    }

    /// The value, if there is only one: such a parameter is not searched. It is a choice of one.
    pub fn fixed(&self) -> Option<&Value> {
        match &self.domain {
            Domain::Categorical(values) => values.first().filter(|_| values.len() == 1),
            _ => None,
        }
    }

    /// A parameter that always has this value.
    pub(crate) fn of_fixed(name: &str, value: &Value) -> Parameter {
        let domain = Domain::Categorical(vec![value.clone()]);
        Parameter { name: name.to_string(), count: None, domain }
    }

    /// The parameter that an entry of a space was made from.
    pub(crate) fn of(entry: &Entry) -> Parameter {
        let (name, domain) = (entry.name().to_string(), entry.domain().clone());
        Parameter { name, count: entry.array_len(), domain }
    }
}

/// As it is read.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(count) = self.count {
            write!(f, "[{count}]")?;
        }
        let log = |scale: &Scale| if *scale == Scale::Log { ":log" } else { "" };
        let joined = |values: &[Value], gap: &str| {
            values.iter().map(Value::to_string).collect::<Vec<_>>().join(gap)
        };
        let number = |x: &f64| Value::from(*x);
        match &self.domain {
            Domain::Real { low, high, scale } => {
                write!(f, "={}:{}{}", number(low), number(high), log(scale))
            }
            Domain::Integer { low, high, scale } => write!(f, "={low}..{high}{}", log(scale)),
            Domain::Grid { low, high, step } => {
                write!(f, "={}:{}:step={}", number(low), number(high), number(step))
            }
            Domain::Levels(values) => write!(f, "={}", joined(values, "<")),
            Domain::Categorical(values) => write!(f, "={}", joined(values, ",")),
            _ => f.write_str("=bool"),
        }
    }
}

impl FromStr for Parameter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some((name, range)) => Parameter::new(name, range),
            None => Err(Error::setting(format!(
                "parameter `{text}` has no range; write it like x=0:10, n=1..64 or mode=a,b,c"
            ))),
        }
    }
}

/// The space of these parameters, checked, and those that are fixed.
pub(crate) fn space(parameters: &[Parameter]) -> Result<(Space, NamedPoint)> {
    if parameters.is_empty() {
        return Err(Error::setting(
            "no parameters; give some with -p (x=0:10, n=1..64, lr=1e-5:1e-1:log, mode=a,b,c) or in \
             the [parameters] of a study file",
        ));
    }
    let mut builder = Space::builder();
    let mut fixed = Vec::new();
    for parameter in parameters {
        let Parameter { name, count, domain } = parameter;
        builder = match (count, parameter.fixed()) {
            (_, Some(value)) => {
                if parameters.iter().filter(|other| other.name == *name).count() > 1 {
                    return Err(Error::setting(format!("parameter `{name}` is given twice")));
                }
                fixed.push((name.clone(), Values::One(value.clone())));
                builder
            }
            (None, None) => builder.coordinate(name, domain.clone()),
            (Some(count), None) => builder.array(name, *count, domain.clone()),
        };
    }
    let fixed = NamedPoint::new(fixed);
    if fixed.values().len() == parameters.len() {
        return Err(Error::setting(format!(
            "there is nothing to search: all parameters are fixed ({fixed}); a range is written like x=0:10, \
             n=1..64 or mode=a,b,c"
        )));
    }
    Ok((builder.build().map_err(of_parameters)?, fixed))
}

/// The error of a space; the library speaks of coordinates.
pub(crate) fn of_parameters(error: racecars::Error) -> Error {
    Error::setting(error.to_string().replacen("coordinate `", "parameter `", 1))
}

/// Whether this could be the name of a parameter.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn read_name(text: &str) -> Result<(String, Option<usize>)> {
    let (name, count) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        None => (text, None),
        Some((name, count)) => match count.parse() {
            Ok(count) if count > 0 => (name, Some(count)),
            _ => {
                return Err(Error::setting(format!(
                    "parameter `{text}`: `{count}` is not a length; an array is written like w[5]=-1:1"
                )));
            }
        },
    };
    if !is_name(name) {
        return Err(Error::setting(format!(
            "parameter `{name}`: a name is a letter followed by letters, digits, `_`, `-` and `.`"
        )));
    }
    if BUILT_IN.contains(&name) {
        return Err(Error::setting(format!(
            "parameter `{name}`: this name stands for something else in commands, as do {}",
            BUILT_IN.join(", ")
        )));
    }
    Ok((name.to_string(), count))
}

fn read_domain(name: &str, range: &str) -> Result<Domain> {
    let refuse = |what: String| Err(Error::setting(format!("parameter `{name}`: {what}")));
    if matches!(range, "bool" | "boolean") {
        return Ok(Domain::Boolean);
    }
    if range.starts_with('[') {
        return refuse(format!("`{range}` is a list; choices are written like \"a,b,c\""));
    }
    if range.contains('<') {
        return Ok(Domain::Levels(range.split('<').map(read_value).collect()));
    }
    if range.contains(',') {
        let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
        let is_range = |text: &str| {
            let ends = text.split_once("..").or_else(|| text.split_once(':'));
            ends.is_some_and(|(low, _)| is_number(low))
        };
        // `1,5:2` and the like are ranges with a decimal comma.
        if range.split(',').any(is_range) && range.split(',').any(is_number) {
            return refuse(format!(
                "`{range}` has numbers and ranges in one list; decimals are written with a point"
            ));
        }
        return Ok(Domain::Categorical(range.split(',').map(read_value).collect()));
    }
    let mut parts = range.split(':');
    let first = parts.next().unwrap_or_default();
    if let Some((low, high)) = first.split_once("..") {
        let (Ok(low), Ok(high)) = (low.trim().parse::<i64>(), high.trim().parse::<i64>()) else {
            return refuse(format!(
                "`{first}` is not two integers; numbers with a fraction are written low:high"
            ));
        };
        return match parts.collect::<Vec<_>>()[..] {
            [] => Ok(Domain::integer(low, high)),
            ["log"] => Ok(Domain::log_integer(low, high)),
            [option] => match option.strip_prefix("step=").map(str::parse::<i64>) {
                Some(Ok(step)) if step > 0 => read_integer_grid(name, low, high, step),
                _ => refuse(format!("`{option}` is neither log nor step=s with a whole s above 0")),
            },
            _ => refuse(format!("`{range}` has too many parts")),
        };
    }
    let second = parts.next();
    let numbers = (first.trim().parse::<f64>(), second.map(|text| text.trim().parse::<f64>()));
    let (Ok(low), Some(Ok(high))) = numbers else {
        if second.is_none()
            && let Some(value) = read_fixed(first)
        {
            return Ok(Domain::Categorical(vec![value]));
        }
        return refuse(format!(
            "`{range}` is none of low:high, low:high:log, low:high:step=s, low..high, a,b,c, a<b<c, \
             bool, nor one number or word, which would be a fixed value"
        ));
    };
    match parts.collect::<Vec<_>>()[..] {
        [] => Ok(Domain::real(low, high)),
        ["log"] => Ok(Domain::log_real(low, high)),
        [option] => match option.strip_prefix("step=").map(str::parse::<f64>) {
            Some(Ok(step)) => Ok(Domain::grid(low, high, step)),
            _ => refuse(format!("`{option}` is neither log nor step=s with a number s")),
        },
        _ => refuse(format!("`{range}` has too many parts")),
    }
}

/// Every `step`-th integer, as levels, so that they stay integers.
fn read_integer_grid(name: &str, low: i64, high: i64, step: i64) -> Result<Domain> {
    /// Beyond this a grid of reals takes less memory than a list.
    const MAX_LEVELS: i64 = 100_000;
    let span = high.checked_sub(low).filter(|span| *span > 0 && span % step == 0);
    match span.map(|span| span / step) {
        Some(steps) if steps < MAX_LEVELS => {
            Ok(Domain::levels((0..=steps).map(|i| low + i * step)))
        }
        Some(steps) => Err(Error::setting(format!(
            "parameter `{name}`: {steps} steps; at most {MAX_LEVELS} are allowed for integers"
        ))),
        None => Err(Error::setting(format!(
            "parameter `{name}`: {low}..{high} is not a whole number of steps of {step}"
        ))),
    }
}

/// A fixed value: a finite number, true, false, or a word or path. Anything else may be a mistyped range.
fn read_fixed(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(truth) = text.parse::<bool>() {
        return Some(Value::Boolean(truth));
    }
    let is_word = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '/'))
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    match text.parse::<f64>() {
        Ok(number) if !number.is_finite() => None,
        // `5.0` is 5, and `007` a word, as among choices.
        Ok(number)
            if number.fract() == 0.0 && number.abs() < 1e15 && text.contains(['.', 'e', 'E']) =>
        {
            Some(Value::Integer(number as i64))
        }
        Ok(number) if text.contains(['.', 'e', 'E']) => Some(Value::Real(number)),
        Ok(_) => Some(read_value(text)),
        Err(_) => is_word.then(|| read_value(text)),
    }
}

/// A choice: an integer or number if it reads as one and is written plainly, otherwise a word.
pub(crate) fn read_value(text: &str) -> Value {
    let text = text.trim();
    if let Ok(integer) = text.parse::<i64>()
        && integer.to_string() == text
    {
        return Value::Integer(integer);
    }
    match text.parse::<f64>() {
        // As a number it must come out as it was written: `007` and `1.50` are words.
        Ok(number) if Value::Real(number).to_string() == text => Value::Real(number),
        _ => Value::Text(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> Domain {
        text.parse::<Parameter>().unwrap().domain
    }

    fn fixed(text: &str) -> Value {
        text.parse::<Parameter>().unwrap().fixed().unwrap().clone()
    }

    fn error(text: &str) -> String {
        let parameter = text.parse::<Parameter>();
        parameter.and_then(|parameter| space(&[parameter])).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_is_read() {
        assert_eq!(domain("x=0:10"), Domain::real(0.0, 10.0));
        assert_eq!(domain("x = -1.5 : 1e3"), Domain::real(-1.5, 1000.0));
        assert_eq!(domain("lr=1e-5:1e-1:log"), Domain::log_real(1e-5, 0.1));
        assert_eq!(domain("x=0:1:step=0.1"), Domain::grid(0.0, 1.0, 0.1));
        assert_eq!(domain("n=1..64"), Domain::integer(1, 64));
        assert_eq!(domain("n=-8..-1"), Domain::integer(-8, -1));
        assert_eq!(domain("n=1..64:log"), Domain::log_integer(1, 64));
        assert_eq!(domain("n=0..64:step=32"), Domain::levels([0, 32, 64]));
        assert_eq!(domain("mode=a,b,c"), Domain::categorical(["a", "b", "c"]));
        assert_eq!(domain("k=1,2"), Domain::categorical([1, 2]));
        assert_eq!(domain("k=0.5,007"), Domain::categorical([Value::Real(0.5), "007".into()]));
        assert_eq!(domain("s=small<large"), Domain::levels(["small", "large"]));
        assert_eq!(domain("flag=bool"), Domain::Boolean);
        assert_eq!(fixed("y=5"), Value::Integer(5));
        assert_eq!(fixed("y=2.50"), Value::Real(2.5));
        assert_eq!(fixed("y=5.0"), Value::Integer(5));
        assert_eq!(fixed("y=1e300"), Value::Real(1e300));
        assert_eq!(fixed("y=007"), Value::from("007"));
        assert_eq!(fixed("y=true"), Value::Boolean(true));
        assert_eq!(fixed("data=/data/train.csv"), Value::from("/data/train.csv"));
        let array: Parameter = "w[5]=-1:1".parse().unwrap();
        assert_eq!((array.name.as_str(), array.count), ("w", Some(5)));
    }

    #[test]
    fn parameters_are_written_as_they_are_read() {
        for text in [
            "x=0:10",
            "lr=1e-5:0.1:log",
            "g=0:1:step=0.1",
            "n=1..64",
            "k=1..64:log",
            "mode=a,b,c",
            "size=small<medium<large",
            "flag=bool",
            "w[5]=-1:1",
            "y=5",
            "mode=fast",
            "flag=true",
        ] {
            assert_eq!(text.parse::<Parameter>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error("x").contains("`x` has no range"));
        assert!(error("x=").contains("none of low:high"));
        assert!(error("x=1:0").contains("parameter `x`: low 1 is not below high 0"));
        assert!(error("x=0:1:lag").contains("`lag` is neither log nor step"));
        assert!(error("x=0:1:log").contains("not positive, as a log scale requires"));
        assert!(error("n=1..2.5").contains("not two integers"));
        assert!(error("n=0..10:step=3").contains("not a whole number of steps"));
        assert!(error("w[0]=0:1").contains("`0` is not a length"));
        assert!(error("2x=0:1").contains("a name is a letter"));
        assert!(error("seed=0:1").contains("stands for something else"));
        assert!(error("m=[a, b]").contains("choices are written like"));
        assert!(error("x=1,5:2").contains("decimals are written with a point"));
        assert!(error("x=0,5:2,5").contains("decimals are written with a point"));
        assert!(error("n=1..3,4").contains("numbers and ranges in one list"));
        assert!(error("m=a,a").contains("`m`: a is repeated"));
        assert!(error("x=0:inf").contains("not a finite number"));
        for text in ["x=inf", "x=0-10", "x=1 2", "x=5%", "x=0;1"] {
            assert!(error(text).contains("nor one number or word"), "{}", error(text));
        }
        assert!(error("x=5").contains("nothing to search: all parameters are fixed (x=5)"));
        assert!(error("w[3]=5").contains("not for an array"));
        let twice = ["x=0:1", "x=5"].map(|text| text.parse::<Parameter>().unwrap());
        assert!(space(&twice).unwrap_err().to_string().contains("`x` is given twice"));
        assert!(space(&[]).unwrap_err().to_string().contains("no parameters"));
    }
}
