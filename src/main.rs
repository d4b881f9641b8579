//! The binary: arguments in, exit code out; everything else lies in the library.

use std::process::ExitCode;

use lullwatch::{app, cli};

fn main() -> ExitCode {
    ExitCode::from(app::run(cli::parse()).code())
}
