//! The binary: arguments in, exit code out; everything else lies in the library.

use std::process::ExitCode;

use clap::Parser;
use lullwatch::app;
use lullwatch::cli::{self, Cli};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => ExitCode::from(app::run(cli).code()),
        Err(error) if error.use_stderr() && cli::is_meant_as_hook(std::env::args_os()) => {
            ExitCode::SUCCESS
        }
        Err(error) => error.exit(),
    }
}
