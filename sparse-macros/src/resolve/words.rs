//! Words that several messages share.

use crate::ast::AttributeText;
use crate::parse::NO_LIST;

/// What to write where a flag or a list stands in the place of a value.
pub(super) fn no_value(text: &AttributeText) -> &'static str {
    match text {
        AttributeText::List(_) | AttributeText::Entries(_) => NO_LIST,
        _ => "flags are given by name, such as `keepdims = true`",
    }
}

/// `2 operands`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
