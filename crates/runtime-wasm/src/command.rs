//! What a call asks for: the name of a program and its arguments. WebAssembly has no shell, so a
//! line is split into words, and what only a shell could do is refused.

use prx_runtime_core::{Error, ErrorKind, Invocation, Result};

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

impl Command {
    /// Reads an invocation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for a line that needs a shell, [`ErrorKind::InvalidRequest`] for
    /// one with an open quote.
    pub(crate) fn of(invocation: &Invocation) -> Result<Self> {
        match invocation {
            Invocation::Program { program, args } => Ok(Self {
                program: program.clone(),
                args: args.clone(),
            }),
            Invocation::Shell { line } => split(line),
        }
    }
}

fn split(line: &str) -> Result<Command> {
    if let Some(what) = shell_syntax(line) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the command line needs a shell, and WebAssembly has none: {what} in `{line}`"),
        )
        .with_hint("quote it if it is meant literally, or use the native or docker backend"));
    }
    let words = shell_words::split(line).map_err(|_| {
        Error::new(
            ErrorKind::InvalidRequest,
            format!("the command line has a quote that is not closed: `{line}`"),
        )
    })?;
    let mut words = words.into_iter();
    let program = words
        .next()
        .filter(|program| !program.is_empty())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("the command line names no program: `{line}`"),
            )
        })?;
    Ok(Command {
        program,
        args: words.collect(),
    })
}

/// The first thing in `line` that means more to a shell than itself.
fn shell_syntax(line: &str) -> Option<String> {
    let mut quote = None;
    let mut at_word_start = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let found = match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => {
                quote = None;
                None
            }
            (Some('\''), _) => None,
            (_, '\\') => {
                chars.next();
                None
            }
            (_, '`') => Some("command substitution `` ` ``".to_owned()),
            (_, '$')
                if chars
                    .peek()
                    .is_some_and(|next| expands(*next, quote.is_some())) =>
            {
                Some("the expansion `$`".to_owned())
            }
            (Some(_), _) => None,
            (None, '\'' | '"') => {
                quote = Some(c);
                None
            }
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')') => Some(format!("the operator `{c}`")),
            (None, '\n') => Some("a line break".to_owned()),
            (None, '*' | '?' | '[') => Some(format!("the pattern `{c}`")),
            (None, '~') if at_word_start => Some("the expansion `~`".to_owned()),
            (None, '#') if at_word_start => Some("the comment `#`".to_owned()),
            (None, _) => None,
        };
        if found.is_some() {
            return found;
        }
        at_word_start = quote.is_none() && c.is_whitespace();
    }
    None
}

/// Whether a `$` before `next` is more than a dollar.
fn expands(next: char, quoted: bool) -> bool {
    next.is_alphanumeric() || "_{(@*#?-$!".contains(next) || !quoted && "'\"".contains(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str) -> Result<Command> {
        Command::of(&Invocation::Shell { line: line.into() })
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (text, words) in [
            ("a", &["a"][..]),
            ("  a   b ", &["a", "b"]),
            (r#"a 'b c' "d e" f\ g"#, &["a", "b c", "d e", "f g"]),
            (r"a '' '$x|y' \* \|", &["a", "", "$x|y", "*", "|"]),
            (r#"a "100$" x~ y#z"#, &["a", "100$", "x~", "y#z"]),
        ] {
            let Command { program, args } = line(text).unwrap();
            let mut all = vec![program];
            all.extend(args);
            assert_eq!(all, words, "{text}");
        }
    }

    #[test]
    fn what_needs_a_shell_is_named() {
        for (text, what) in [
            ("a | b", "the operator `|`"),
            ("a && b", "the operator `&`"),
            ("a; b", "the operator `;`"),
            ("a > b", "the operator `>`"),
            ("a < b", "the operator `<`"),
            ("(a)", "the operator `(`"),
            ("a\nb", "a line break"),
            ("a $HOME", "the expansion `$`"),
            ("a \"$HOME\"", "the expansion `$`"),
            ("a $(b)", "the expansion `$`"),
            ("a `b`", "command substitution"),
            ("a *.txt", "the pattern `*`"),
            ("a ~/x", "the expansion `~`"),
            ("a # b", "the comment `#`"),
        ] {
            let error = line(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(what), "{text}: {error}");
        }
        assert_eq!(line("a 'b").unwrap_err().kind(), ErrorKind::InvalidRequest);
        assert_eq!(line("''").unwrap_err().kind(), ErrorKind::InvalidRequest);
    }

    #[test]
    fn a_program_is_taken_as_it_is() {
        let invocation = Invocation::Program {
            program: "a b".into(),
            args: vec!["$x | y".into()],
        };
        let command = Command::of(&invocation).unwrap();
        assert_eq!((command.program.as_str(), command.args.len()), ("a b", 1));
    }
}
