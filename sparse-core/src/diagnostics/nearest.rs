//! Suggestions for misspelt words.

/// The candidate nearest to a misspelt word, if one is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.len().max(word.len()) / 4 && *distance < candidate.len()
        })
        // Of equally near ones, the one of the same length: letters are swapped more often than
        // left out.
        .min_by_key(|(distance, candidate)| (*distance, candidate.len().abs_diff(word.len())))
        .map(|(_, candidate)| candidate)
}

/// Edits between two words; a swap of neighbours is one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in table.iter_mut().enumerate() {
        row[0] = i;
    }
    table[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(table[i - 2][j - 2] + 1);
            }
            table[i][j] = best;
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_completed() {
        let names = ["dot", "log", "log1p", "tanh", "softmax_cross_entropy"];
        assert_eq!(nearest("dto", names), Some("dot"));
        assert_eq!(nearest("softmax_crossentropy", names), Some("softmax_cross_entropy"));
        assert_eq!(nearest("convolution", names), None);
        assert_eq!(nearest("tahn", ["tan", "tanh"]), Some("tanh"));
    }
}
