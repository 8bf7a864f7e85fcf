//! The table of features, of the README and the front page.

/// A row for each feature of a manifest, described by the comment `##` above it.
pub(crate) fn table(manifest: &str) -> String {
    let (_, section) = manifest.split_once("\n[features]\n").unwrap();
    let (section, _) = section.split_once("\n[").unwrap();
    let mut table = "| feature | default | what it adds |\n|---|---|---|\n".to_owned();
    let mut description = "";
    let (defaults, rest) = section.split_once('\n').unwrap();
    for line in rest.lines() {
        if let Some(comment) = line.strip_prefix("## ") {
            description = comment.trim_end_matches('.');
        } else if let Some((feature, _)) = line.split_once(" = ") {
            let is_default = defaults.contains(&format!("\"{feature}\""));
            let default = if is_default { "yes" } else { "no" };
            table += &format!("| `{feature}` | {default} | {description} |\n");
        }
    }
    table
}

#[test]
fn rows_have_the_comment_above_the_feature() {
    let manifest = "\n[features]\ndefault = [\"a\"]\n## One.\na = []\n## Two.\nb = []\n\n[lints]\n";
    let rows = table(manifest).lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows, ["| `a` | yes | One |", "| `b` | no | Two |"]);
}
