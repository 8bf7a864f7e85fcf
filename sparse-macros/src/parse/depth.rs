//! How deep a source is nested: checked on its tokens, before anything follows them by recursion.
//!
//! `syn` and the walks over the tree follow what is nested by calling themselves, on the stack of
//! the compiler. What is written side by side (`a + b + c`, `x.tanh().tanh()`) is followed by
//! loops, whatever its length up to [`MOST_TERMS`].

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use std::iter::Peekable;

/// The deepest nest: what rustc's own recursion limit is raised to where 128 are not enough.
pub(crate) const DEEPEST: usize = 500;

/// The most signs in one expression.
pub(crate) const MOST_TERMS: usize = 1 << 14;

/// What is wrong with a source, and where.
pub(super) enum TooLarge {
    Deep(Span),
    Long(Span),
}

/// Words of Rust that may stand in front of an expression or a type, which is then inside of
/// theirs.
const IN_FRONT: [&str; 18] = [
    "as", "async", "break", "const", "dyn", "else", "fn", "for", "if", "impl", "let", "loop",
    "match", "move", "return", "static", "unsafe", "while",
];

/// The tokens of one group, and how deep they are.
struct Level {
    tokens: Peekable<proc_macro2::token_stream::IntoIter>,
    depth: usize,
    /// Signs before a value, such as those of `- -x`, since the last sign between two values.
    before: usize,
    /// What the rest of an expression is inside of: `|x|`, `=`, `<`, `..`, and words, since the
    /// last `,` or `;`.
    around: usize,
    /// Signs between values, since the last `,` or `;`.
    between: usize,
    /// Whether the last token was a value, or the end of one.
    after_value: bool,
}

impl Level {
    fn of(tokens: TokenStream, depth: usize) -> Self {
        let tokens = tokens.into_iter().peekable();
        Level { tokens, depth, before: 0, around: 0, between: 0, after_value: false }
    }

    fn inside(&self) -> usize {
        self.depth + self.before + self.around
    }

    /// Counts a sign.
    fn sign(&mut self, sign: char, spacing: Spacing) {
        let next = |tokens: &mut Peekable<_>, wanted| matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == wanted);
        let is_pair =
            |tokens: &mut Peekable<_>, wanted| spacing == Spacing::Joint && next(tokens, wanted);
        match sign {
            ',' | ';' => (self.before, self.around, self.between) = (0, 0, 0),
            '=' | '|' | '<' | '>' => self.around += 1,
            '.' if is_pair(&mut self.tokens, '.') => self.around += 1,
            '-' if is_pair(&mut self.tokens, '>') => self.around += 1,
            _ if self.after_value => {
                self.before = 0;
                self.between += 1;
            }
            _ => self.before += 1,
        }
        // `x?` is a value still.
        self.after_value &= sign == '?';
    }
}

/// What is deeper than [`DEEPEST`] or longer than [`MOST_TERMS`]. Linear in the tokens; no
/// recursion.
pub(super) fn check(tokens: TokenStream) -> Result<(), TooLarge> {
    let mut levels = vec![Level::of(tokens, 0)];
    while let Some(level) = levels.last_mut() {
        let Some(token) = level.tokens.next() else {
            levels.pop();
            continue;
        };
        let span = match &token {
            TokenTree::Group(group) => group.span_open(),
            token => token.span(),
        };
        let mut inner = None;
        match token {
            TokenTree::Punct(punct) => level.sign(punct.as_char(), punct.spacing()),
            TokenTree::Ident(word) => {
                let is_in_front = IN_FRONT.iter().any(|known| word == known);
                level.around += usize::from(is_in_front);
                level.after_value = !is_in_front;
            }
            TokenTree::Literal(_) => level.after_value = true,
            TokenTree::Group(group) => {
                level.after_value = true;
                // What a macro was given comes in a group without a sign.
                inner = Some(Level::of(group.stream(), level.inside() + 1));
            }
        }
        let deepest = inner.as_ref().map_or(level.inside(), |inner| inner.depth);
        if deepest > DEEPEST {
            return Err(TooLarge::Deep(span));
        }
        if level.between > MOST_TERMS {
            return Err(TooLarge::Long(span));
        }
        levels.extend(inner);
    }
    Ok(())
}

/// Tokens that are nested so deep are parsed apart from what is around them.
const APART: usize = 32;

/// What was cut out of tokens.
#[derive(Default)]
pub(super) struct Cut(Vec<Group>);

impl Cut {
    /// What stands in the place of a group's tokens. No name of a source begins so.
    const MARK: &str = "__nest_";

    /// The tokens without what is in their deepest groups, so that `syn` calls itself a few times
    /// only.
    pub(super) fn cut(&mut self, tokens: TokenStream) -> TokenStream {
        self.within(tokens, APART)
    }

    fn within(&mut self, tokens: TokenStream, levels: usize) -> TokenStream {
        let shallow = |token: TokenTree| {
            let TokenTree::Group(group) = token else { return token };
            let stream = group.stream();
            let is_nest = |token: TokenTree| matches!(token, TokenTree::Group(_));
            let inner = if levels > 0 {
                self.within(stream, levels - 1)
            } else if stream.into_iter().any(is_nest) {
                self.0.push(group.clone());
                let mark = format!("{}{}", Self::MARK, self.0.len() - 1);
                TokenStream::from(TokenTree::Ident(Ident::new(&mark, group.span())))
            } else {
                return TokenTree::Group(group);
            };
            let mut cut = Group::new(group.delimiter(), inner);
            cut.set_span(group.span());
            TokenTree::Group(cut)
        };
        super::keywords::callable(tokens).into_iter().map(shallow).collect()
    }

    /// The tokens with what was cut out of them.
    pub(super) fn restored(&self, tokens: TokenStream) -> TokenStream {
        if self.0.is_empty() {
            return tokens;
        }
        let whole = |token: TokenTree| match token {
            TokenTree::Group(group) => {
                let mut whole = Group::new(group.delimiter(), self.restored(group.stream()));
                whole.set_span(group.span());
                TokenTree::Group(whole).into()
            }
            TokenTree::Ident(word) => match self.group(&word) {
                Some(group) => group.stream(),
                None => TokenTree::Ident(word).into(),
            },
            other => TokenStream::from(other),
        };
        tokens.into_iter().flat_map(whole).collect()
    }

    /// The group that a word stands for the tokens of.
    pub(super) fn group(&self, word: &Ident) -> Option<&Group> {
        if self.0.is_empty() {
            return None;
        }
        let word = word.to_string();
        self.0.get(word.strip_prefix(Self::MARK)?.parse::<usize>().ok()?)
    }
}

/// A group with other delimiters.
pub(super) fn in_parentheses(group: &Group) -> TokenStream {
    let mut same = Group::new(Delimiter::Parenthesis, group.stream());
    same.set_span(group.span());
    TokenTree::Group(same).into()
}
