//! `Debug` of errors: what `main` prints of the error that it returns.

use std::error::Error;
use std::fmt;

/// Writes what an error says, then each of its sources that it does not quote, on a line of its
/// own.
///
/// # Errors
///
/// Those of the formatter.
pub fn debug(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut said = error.to_string();
    f.write_str(&said)?;
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !said.contains(&text) {
            write!(f, "\n  caused by: {text}")?;
            said.push_str(&text);
        }
        source = error.source();
    }
    Ok(())
}

/// Implements `Debug` of error types by [`debug`]: a program whose `main` returns one ends with a
/// sentence, and so does `unwrap`.
#[macro_export]
#[doc(hidden)]
macro_rules! debug_of_errors {
    ($($error:ty),+ $(,)?) => {$(
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::readable::debug(self, f)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use std::fmt;

    /// An error, whether it quotes its source, and its source.
    struct Failed(&'static str, bool, Option<Box<Failed>>);

    debug_of_errors!(Failed);

    impl std::error::Error for Failed {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.2.as_deref().map(|source| source as _)
        }
    }

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match (&self.2, self.1) {
                (Some(source), true) => write!(f, "{}: {source}", self.0),
                _ => f.write_str(self.0),
            }
        }
    }

    #[test]
    fn sources_that_an_error_does_not_quote_are_lines_of_their_own() {
        let disk = || Failed("the disk is full", false, None);
        let write = |quotes| Failed("cannot write `a`", quotes, Some(Box::new(disk())));
        assert_eq!(format!("{:?}", disk()), "the disk is full");
        assert_eq!(format!("{:?}", write(true)), "cannot write `a`: the disk is full");
        let save = Failed("the model is not saved", false, Some(Box::new(write(false))));
        assert_eq!(
            format!("{save:?}"),
            "the model is not saved\n  caused by: cannot write `a`\n  caused by: the disk is full"
        );
        let boxed: Box<dyn std::error::Error> = Box::new(save);
        assert!(format!("{boxed:?}").starts_with("the model is not saved\n"));
    }
}
