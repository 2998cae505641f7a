//! What an installation has beside the program: completions for shells, manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output;

/// `tidemark completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidemark completions bash > /etc/bash_completion.d/tidemark
  tidemark completions zsh > \"${fpath[1]}/_tidemark\"
  tidemark completions fish > ~/.config/fish/completions/tidemark.fish")]
pub struct CompletionArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `tidemark man`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidemark man ~/.local/share/man/man1")]
pub struct ManArguments {
    /// The folder, which is made if it is not there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Prints a shell's completions.
pub fn completions(arguments: &CompletionArguments) -> Result<u8, Failure> {
    let mut text = Vec::new();
    let mut command = Arguments::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(tidemark_lab::EXIT_PASS)
}

/// Writes `tidemark.1`, `tidemark-run.1` and so on; those that are there are written again.
pub fn man(arguments: &ManArguments) -> Result<u8, Failure> {
    let dir = &arguments.dir;
    fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), dir))
        .map_err(|error| Failure::unwritable(format!("cannot write to {}: {error}", dir.display())))?;
    Ok(tidemark_lab::EXIT_PASS)
}
