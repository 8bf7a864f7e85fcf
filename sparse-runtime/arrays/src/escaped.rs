//! Escaped text of a file in a message: control characters are written as escapes.

use std::fmt::{self, Display, Formatter, Write};

/// Prints its content with escapes for control characters, and for marks that change the direction
/// of text. A name or a note of a file can then neither move a terminal's cursor nor pretend to be
/// another line.
///
/// ```
/// use nnz::escaped::Escaped;
///
/// assert_eq!(Escaped("größe\u{1b}[2J\n").to_string(), r"größe\u{1b}[2J\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, control)) = rest.char_indices().find(|(_, c)| controls(*c)) {
            write!(self.0, "{}{}", &rest[..at], control.escape_default())?;
            rest = &rest[at + control.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Whether a character affects its surroundings.
fn controls(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_escaped_and_nothing_else() {
        let plain = "naïve `x`, \"y\" \\ 'z' – 日本";
        assert_eq!(Escaped(plain).to_string(), plain);
        assert_eq!(
            Escaped("a\u{7}b\r\nc\u{9b}d\u{202e}e\u{2028}\0").to_string(),
            r"a\u{7}b\r\nc\u{9b}d\u{202e}e\u{2028}\u{0}"
        );
        assert_eq!(Escaped("").to_string(), "");
    }
}
