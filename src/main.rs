//! The binary: arguments in, exit code out; everything else lies in the library.

use std::process::ExitCode;

use lullwatch::{app, cli};

fn main() -> ExitCode {
    match cli::parse() {
        Ok(cli) => ExitCode::from(app::run(cli).code()),
        Err(code) => code,
    }
}
