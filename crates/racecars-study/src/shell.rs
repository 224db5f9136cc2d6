//! Commands for a shell. A value becomes a word in quotes, which is only right where the shell expects a
//! word; so values that need quotes are refused elsewhere.

use crate::error::{Error, Result};
use crate::text::{Piece, Slot, Text};

/// A text as one word of a shell.
pub(crate) fn quoted(text: String) -> String {
    if is_plain(&text) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A value as one word of a shell that is nothing but a word: `A=b` can be an assignment.
pub(crate) fn quoted_value(text: String) -> String {
    if text.contains('=') { format!("'{}'", text.replace('\'', r"'\''")) } else { quoted(text) }
}

/// Whether a text is the same to a shell with and without quotes of any kind.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=.,:/@%".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

/// A command as it is typed into a shell.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let words: Vec<String> = arguments.iter().cloned().map(quoted).collect();
    words.join(" ")
}

/// Refuses a script with a value in it that the shell might run or change: one that is not plain, by
/// `is_plain`, where quotes are open or it is not certain that a word is expected.
pub(crate) fn check(script: &Text, is_plain: impl Fn(&Slot) -> bool) -> Result<()> {
    let mut reader = Reader::default();
    for piece in script.pieces() {
        let place = match piece {
            Piece::Plain(plain) => {
                plain.chars().for_each(|c| reader.read(c));
                continue;
            }
            Piece::Slot(_) if reader.last == '$' => Some("after a `$`".to_string()),
            Piece::Slot(slot) if is_plain(slot) => None,
            Piece::Slot(Slot::Flag(_, text)) => {
                return Err(Error::setting(format!(
                    "the flag's text `{text}` in the shell's command may only have blanks, letters, digits and \
                     _ - + = . , : / @ %"
                )));
            }
            Piece::Slot(_) => reader.place(),
        };
        if let Some(place) = place {
            return Err(Error::setting(format!(
                "a parameter in the shell's command stands {place}, where the shell could run or change a \
                 value with blanks, quotes or `$` in it. Put {{name}} outside of quotes and at the front, or \
                 use --env '*' and \"$RACECARS_name\", which may stand anywhere"
            )));
        }
        reader.read('x');
    }
    Ok(())
}

/// Reads a script as far as to know where words are.
#[derive(Default)]
struct Reader {
    /// The quote that is open.
    open: Option<char>,
    is_escaped: bool,
    last: char,
    /// What makes it uncertain how the rest is read.
    doubt: Option<&'static str>,
    word: String,
    /// The last word that is no option.
    program: String,
}

impl Reader {
    fn read(&mut self, c: char) {
        let last = std::mem::replace(&mut self.last, c);
        if std::mem::take(&mut self.is_escaped) {
            self.word.push(c);
            return;
        }
        let doubt = match (self.open, c) {
            (Some('\''), '\'') => {
                self.open = None;
                None
            }
            (Some('\''), _) => None,
            (_, '\\') => {
                self.is_escaped = true;
                None
            }
            (_, '`') => Some("`"),
            (_, '(') if last == '$' => Some("$("),
            (_, '{') if last == '$' => Some("${"),
            (Some(_), '"') => {
                self.open = None;
                None
            }
            (Some(_), _) => None,
            (None, '\'' | '"') => {
                self.open = Some(c);
                (last == '$').then_some("$'")
            }
            (None, '<') if last == '<' => Some("<<"),
            (None, '(') if last == '(' => Some("(("),
            (None, '#') if self.word.is_empty() => Some("#"),
            (None, c) if c.is_whitespace() || ";|&()".contains(c) => self.end_word(),
            _ => None,
        };
        if self.open.is_some() || !(c.is_whitespace() || ";|&()".contains(c)) {
            self.word.push(c);
        }
        self.doubt = self.doubt.or(doubt);
    }

    /// Some programs have a shell read their arguments once more.
    fn end_word(&mut self) -> Option<&'static str> {
        let word = std::mem::take(&mut self.word);
        let name = word.rsplit('/').next().unwrap_or_default();
        let is_shell = ["sh", "bash", "dash", "ksh", "zsh"].contains(&self.program.as_str());
        match name {
            "eval" => Some("eval"),
            "ssh" => Some("ssh"),
            "su" => Some("su"),
            option if option.starts_with('-') => {
                (is_shell && option.contains('c')).then_some("sh -c")
            }
            _ => {
                self.program = name.to_string();
                None
            }
        }
    }

    fn place(&self) -> Option<String> {
        match (self.doubt, self.open) {
            (Some(what), _) => Some(format!("after `{what}`")),
            (None, Some(_)) => Some("inside quotes".to_string()),
            (None, None) => self.is_escaped.then(|| "after a backslash".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Unknown;
    use racecars::Space;

    #[test]
    fn a_shell_sees_one_word() {
        let word = |text: &str| quoted(text.to_string());
        assert_eq!(word("a-b/c.d"), "a-b/c.d");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(word(""), "''");
        assert_eq!((word("A=b"), quoted_value("A=b".into())), ("A=b".into(), "'A=b'".into()));
        assert_eq!(command_line(&["echo".into(), "$HOME".into()]), "echo '$HOME'");
    }

    #[test]
    fn values_stand_where_words_are_expected() {
        let space = Space::builder().categorical("m", ["a b"]).integer("n", 1, 2).build().unwrap();
        let fixed = crate::point::NamedPoint::default();
        let names = crate::text::Names { space: &space, fixed: &fixed };
        let check = |script: &str| {
            let text = Text::parse(script, names, Unknown::Refuse, "the command").unwrap();
            check(&text, |slot| *slot == Slot::Parameter(1)).map_err(|error| error.to_string())
        };
        for script in [
            "echo {m}",
            "echo x{m}y | wc -c",
            "echo \"a \\\" b\" 'c \" d' {m}",
            "bash run.sh {m}",
            "(cd x && ./sim -c {m} > out; tail -1 out)",
            "echo it\\'s {m}",
            "x={m}; echo \"$x\"",
            // A number may stand anywhere.
            "echo \"{n}\" '{n}' $(({n} * 2)) `echo {n}`; eval echo {n}",
        ] {
            assert_eq!(check(script), Ok(()), "{script}");
        }
        for (script, place) in [
            ("echo \"{m}\"", "inside quotes"),
            ("echo '{m}'", "inside quotes"),
            ("echo \"it's {m}\"", "inside quotes"),
            ("echo \\\\\"{m}\"", "inside quotes"),
            ("echo \\{m}", "after a backslash"),
            ("echo $(echo {m})", "after `$(`"),
            ("echo \"$(echo \"{m}\")\"", "after `$(`"),
            ("echo `echo {m}`", "after ``"),
            ("echo $(( {m} ))", "after `$(`"),
            ("echo ${x:-{m}}", "after `${`"),
            ("cat <<END\n{m}\nEND", "after `<<`"),
            ("echo a # it's\necho {m}", "after `#`"),
            ("eval echo {m}", "after `eval`"),
            ("ssh host cat {m}", "after `ssh`"),
            ("/bin/sh -c {m}", "after `sh -c`"),
            ("bash -lc 'x' {m}", "after `sh -c`"),
            ("echo $'a' {m}", "after `$'`"),
            ("echo ${n}", "after a `$`"),
        ] {
            let error = check(script).unwrap_err();
            assert!(error.contains(&format!("stands {place}")), "{script}: {error}");
        }
    }
}
