//! The binary: arguments in, exit code out; everything else lies in the library.

use std::process::ExitCode;

use clap::Parser;
use lullwatch::app;
use lullwatch::cli::Cli;

fn main() -> ExitCode {
    ExitCode::from(app::run(Cli::parse()).code())
}
