//! The text of conditions and constraints, as a tree.
//!
//! ```text
//! any        = all { "or" all }
//! all        = negation { "and" negation }
//! negation   = "not" negation | comparison
//! comparison = sum { ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") sum } | sum ["not"] "in" list
//! sum        = product { ("+" | "-") product }
//! product    = sign { ("*" | "/") sign }
//! sign       = "-" sign | atom [ "^" sign ]
//! atom       = number | word [ "[" index "]" ] | word "(" any { "," any } ")" | "text" | "(" any ")"
//! ```
//!
//! A word is a name or, where the space has no such name, a text: `kernel = poly`. Names with other
//! characters than letters, digits, `_` and `.` are in backticks.

use super::expression::Relation;

/// A condition, a constraint or a part of one, before names are looked up.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Number(f64),
    /// A name or a text.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// A name in backticks.
    Name(String),
    /// A coordinate of an array.
    Element(String, usize),
    Call(String, Vec<Tree>),
    Negative(Box<Tree>),
    Arithmetic(char, Box<Tree>, Box<Tree>),
    Compare(Relation, Box<Tree>, Box<Tree>),
    In(Box<Tree>, Vec<Tree>),
    Not(Box<Tree>),
    All(Vec<Tree>),
    Any(Vec<Tree>),
}

/// The deepest nesting of brackets and signs.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Word(String),
    Text(String),
    Name(String),
    Symbol(&'static str),
}

/// Two characters before one, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 19] = [
    "<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "^", "(", ")", "[", "]", "{", "}",
    ",",
];

/// Reads a whole text. The error says what is wrong and where.
pub(super) fn parse(text: &str) -> Result<Tree, String> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let tree = parser.any()?;
    match parser.tokens.get(parser.next) {
        None => Ok(tree),
        Some(token) => Err(format!("{} is not expected after the end", shown(Some(token)))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let number = rest[..length].parse().ok().filter(|x: &f64| x.is_finite());
            let digits = &rest[..length];
            let end = rest[length..].chars().next();
            let number = number.filter(|_| !end.is_some_and(is_word_character));
            tokens.push(Token::Number(number.ok_or(format!("`{digits}` is not a number"))?));
            length
        } else if let Some(quote) = ['"', '\'', '`'].into_iter().find(|&quote| quote == first) {
            let body = &rest[1..];
            let end = body.find(quote).ok_or(format!("{quote} has no end"))?;
            let inside = body[..end].to_string();
            tokens.push(if quote == '`' { Token::Name(inside) } else { Token::Text(inside) });
            end + 2
        } else if is_word_character(first) {
            let length = rest.find(|c| !is_word_character(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_string()));
            length
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        } else {
            return Err(format!("`{first}` is not part of an expression"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// The length of the number at the start of a text: digits, a point, an exponent.
fn number_length(text: &str) -> usize {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let Some(exponent) = text[digits..].strip_prefix(['e', 'E']) else { return digits };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let sign = exponent.len() - unsigned.len();
    match unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len()) {
        0 => digits,
        length => digits + 1 + sign + length,
    }
}

fn shown(token: Option<&Token>) -> String {
    match token {
        None => "the end".to_string(),
        Some(Token::Number(x)) => format!("`{x}`"),
        Some(Token::Word(word)) | Some(Token::Name(word)) => format!("`{word}`"),
        Some(Token::Text(text)) => format!("\"{text}\""),
        Some(Token::Symbol(symbol)) => format!("`{symbol}`"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn any(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("brackets are nested deeper than {MAX_DEPTH}"));
        }
        let mut parts = vec![self.all()?];
        while self.takes_word("or") {
            parts.push(self.all()?);
        }
        self.depth -= 1;
        Ok(single_or(parts, Tree::Any))
    }

    fn all(&mut self) -> Result<Tree, String> {
        let mut parts = vec![self.negation()?];
        while self.takes_word("and") {
            parts.push(self.negation()?);
        }
        Ok(single_or(parts, Tree::All))
    }

    fn negation(&mut self) -> Result<Tree, String> {
        let mut negations = 0;
        while self.takes_word("not") {
            negations += 1;
        }
        let tree = self.comparison()?;
        Ok(if negations % 2 == 1 { Tree::Not(Box::new(tree)) } else { tree })
    }

    fn comparison(&mut self) -> Result<Tree, String> {
        let mut left = self.sum()?;
        let is_in = self.is_word(0, "in") || (self.is_word(0, "not") && self.is_word(1, "in"));
        if is_in {
            let is_negated = self.takes_word("not");
            self.next += 1;
            let found = Tree::In(Box::new(left), self.list()?);
            return Ok(if is_negated { Tree::Not(Box::new(found)) } else { found });
        }
        let mut parts = Vec::new();
        while let Some(relation) = self.relation() {
            let right = self.sum()?;
            parts.push(Tree::Compare(relation, Box::new(left), Box::new(right.clone())));
            left = right;
        }
        Ok(if parts.is_empty() { left } else { single_or(parts, Tree::All) })
    }

    fn relation(&mut self) -> Option<Relation> {
        let Some(Token::Symbol(symbol)) = self.tokens.get(self.next) else { return None };
        let relation = match *symbol {
            "<" => Relation::Less,
            "<=" => Relation::LessOrEqual,
            ">" => Relation::Greater,
            ">=" => Relation::GreaterOrEqual,
            "=" | "==" => Relation::Equal,
            "!=" => Relation::NotEqual,
            _ => return None,
        };
        self.next += 1;
        Some(relation)
    }

    fn list(&mut self) -> Result<Vec<Tree>, String> {
        let pairs = [("(", ")"), ("[", "]"), ("{", "}")];
        let Some((_, end)) = pairs.into_iter().find(|(open, _)| self.takes(open)) else {
            let found = shown(self.tokens.get(self.next));
            return Err(format!("`in` takes a list such as (a, b), not {found}"));
        };
        let mut items = vec![self.sum()?];
        while self.takes(",") {
            items.push(self.sum()?);
        }
        self.expect(end)?;
        Ok(items)
    }

    fn sum(&mut self) -> Result<Tree, String> {
        self.chain(&[("+", '+'), ("-", '-')], Parser::product)
    }

    fn product(&mut self) -> Result<Tree, String> {
        self.chain(&[("*", '*'), ("/", '/')], Parser::sign)
    }

    fn chain(
        &mut self,
        operators: &[(&str, char)],
        part: fn(&mut Parser) -> Result<Tree, String>,
    ) -> Result<Tree, String> {
        let mut left = part(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.takes(symbol)) {
            left = Tree::Arithmetic(*operator, Box::new(left), Box::new(part(self)?));
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("signs are nested deeper than {MAX_DEPTH}"));
        }
        let tree = if self.takes("-") {
            Tree::Negative(Box::new(self.sign()?))
        } else {
            let base = self.atom()?;
            match self.takes("^") {
                true => Tree::Arithmetic('^', Box::new(base), Box::new(self.sign()?)),
                false => base,
            }
        };
        self.depth -= 1;
        Ok(tree)
    }

    fn atom(&mut self) -> Result<Tree, String> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        match token {
            Some(Token::Number(x)) => Ok(Tree::Number(x)),
            Some(Token::Text(text)) => Ok(Tree::Text(text)),
            Some(Token::Symbol("(")) => {
                let inside = self.any()?;
                self.expect(")")?;
                Ok(inside)
            }
            Some(Token::Name(name)) => self.element(name.clone(), Tree::Name(name)),
            Some(Token::Word(word)) if !["and", "or", "not", "in"].contains(&word.as_str()) => {
                if !self.takes("(") {
                    return self.element(word.clone(), Tree::Word(word));
                }
                let mut arguments = vec![self.any()?];
                while self.takes(",") {
                    arguments.push(self.any()?);
                }
                self.expect(")")?;
                Ok(Tree::Call(word, arguments))
            }
            other => Err(format!("{} stands where a value is expected", shown(other.as_ref()))),
        }
    }

    /// A coordinate of an array if an index in brackets follows.
    fn element(&mut self, name: String, whole: Tree) -> Result<Tree, String> {
        if !self.takes("[") {
            return Ok(whole);
        }
        let index = self.tokens.get(self.next).cloned();
        self.next += 1;
        self.expect("]")?;
        match index {
            Some(Token::Number(x)) if x.fract() == 0.0 => Ok(Tree::Element(name, x as usize)),
            other => Err(format!("{} is not an index of `{name}`", shown(other.as_ref()))),
        }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.tokens.get(self.next + ahead), Some(Token::Word(found)) if found == word)
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(0, word);
        self.next += usize::from(is_next);
        is_next
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is_next =
            matches!(self.tokens.get(self.next), Some(Token::Symbol(found)) if *found == symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.takes(symbol) {
            return Ok(());
        }
        Err(format!("`{symbol}` is missing before {}", shown(self.tokens.get(self.next))))
    }
}

fn single_or(mut parts: Vec<Tree>, many: fn(Vec<Tree>) -> Tree) -> Tree {
    if parts.len() == 1 { parts.remove(0) } else { many(parts) }
}
