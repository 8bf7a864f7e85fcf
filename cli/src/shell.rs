//! `nnz completions` and `nnz man`: the command line, for shells and for `man`.
//!
//! ```text
//! nnz completions bash > ~/.local/share/bash-completion/completions/nnz
//! nnz man train > nnz-train.1
//! ```

use crate::report::written;
use crate::{Program, command};
use clap::{CommandFactory, FromArgMatches, Parser};
use clap_complete::Shell;
use std::io::{self, Write};

/// Prints a script with which a shell completes the words of this program.
#[derive(Debug, Parser)]
#[command(name = "completions")]
struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page of this program, or of a subcommand, for `man`.
#[derive(Debug, Parser)]
#[command(name = "man")]
struct Manual {
    /// The subcommand.
    subcommand: Option<String>,
}

pub(crate) fn completions() -> Program {
    Program {
        command: Completions::command(),
        run: |matches| {
            let Completions { shell } = Completions::from_arg_matches(matches)?;
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "nnz", &mut script);
            written(io::stdout().write_all(&script))
        },
    }
}

pub(crate) fn manual() -> Program {
    Program {
        command: Manual::command(),
        run: |matches| {
            let Manual { subcommand } = Manual::from_arg_matches(matches)?;
            let command = command();
            let page = match &subcommand {
                None => command,
                Some(name) => {
                    let Some(found) = command.find_subcommand(name) else {
                        let names: Vec<&str> =
                            command.get_subcommands().map(|known| known.get_name()).collect();
                        let names = names.join(", ");
                        return Err(format!("`{name}` is no subcommand: they are {names}").into());
                    };
                    found.clone().name(format!("nnz-{name}"))
                }
            };
            let mut text = Vec::new();
            clap_mangen::Man::new(page).render(&mut text)?;
            written(io::stdout().write_all(&text))
        },
    }
}
