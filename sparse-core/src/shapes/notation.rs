//! Words of shape rules: `[m, k] same` is two terms, and `[m, k]` two names.

/// `[m, k] same` → `["[m, k]", "same"]`.
pub(crate) fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = match rest.find(']') {
            Some(end) if rest.starts_with('[') => end + 1,
            _ => rest.find(' ').unwrap_or(rest.len()),
        };
        terms.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    terms
}

/// `[m, k]` → `["m", "k"]`.
pub(crate) fn names_of(pattern: &str) -> Vec<&str> {
    pattern
        .trim_matches(['[', ']'])
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}
