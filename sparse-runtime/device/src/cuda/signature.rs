//! Signatures of kernels in a text: their names and the types of their parameters.
//!
//! A launch passes addresses, so only this comparison shows that they do not fit the kernel.

/// One kernel of a text.
#[derive(Debug, PartialEq)]
pub(super) struct Signature<'a> {
    pub(super) name: &'a str,
    /// Types without names and `__restrict__`, in single spaces: `const VALUE *`.
    pub(super) parameters: Vec<String>,
}

/// The kernels of a text, which declares each as `extern "C" __global__ void name(…)`.
pub(super) fn signatures(text: &str) -> Vec<Signature<'_>> {
    text.split("__global__").skip(1).filter_map(signature).collect()
}

fn signature(after: &str) -> Option<Signature<'_>> {
    let after = after.split_once("void")?.1;
    let (name, after) = after.split_once('(')?;
    let (parameters, _) = after.split_once(')')?;
    let parameters = match parameters.trim() {
        "" => Vec::new(),
        parameters => parameters.split(',').map(parameter_type).collect(),
    };
    Some(Signature { name: name.trim(), parameters })
}

/// `const VALUE *__restrict__ values` as `const VALUE *`.
fn parameter_type(parameter: &str) -> String {
    let spaced = parameter.replace("__restrict__", " ").replace('*', " * ");
    let mut words: Vec<_> = spaced.split_whitespace().collect();
    words.pop();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_of_kernels() {
        let text = r#"
            __device__ u32 half(u32 x) { return x / 2; }
            extern "C" __global__ void first(const VALUE *__restrict__ values, u64 n,
                                             REAL* out) { out[0] = values[n]; }
            extern "C" __global__ void second() {}
        "#;
        let parameters = vec!["const VALUE *".to_owned(), "u64".to_owned(), "REAL *".to_owned()];
        assert_eq!(
            signatures(text),
            [
                Signature { name: "first", parameters },
                Signature { name: "second", parameters: vec![] }
            ]
        );
    }
}
