//! Balanced nests of items, which the compiler of Rust follows to a depth of 128.

use proc_macro2::TokenStream;

/// Items in a nest as deep as the logarithm of their number, in order.
pub(super) fn balanced(
    items: &[TokenStream],
    join: impl Fn(TokenStream, TokenStream) -> TokenStream + Copy,
) -> Option<TokenStream> {
    match items {
        [] => None,
        [item] => Some(item.clone()),
        items => {
            let (left, right) = items.split_at(items.len().div_ceil(2));
            Some(join(balanced(left, join)?, balanced(right, join)?))
        }
    }
}
