//! `--log-file`: what was done and what went wrong, for whoever looks into it later.
//!
//! Counts, paths and messages, never what a transcript says. The file is private, is appended to, and
//! may be shared by processes: each line is one write. `RUST_LOG` sets how much; without it, `info`.

use std::fs::OpenOptions;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::text;

/// Begins to log. Without this, notes and warnings go nowhere.
pub fn start(path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write the log file {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(cannot)?;
    }
    let file =
        OpenOptions::new().create(true).append(true).mode(0o600).open(path).with_context(cannot)?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .with_env_filter(filter)
        .with_writer(Mutex::new(file))
        .try_init()
        .map_err(|error| anyhow::anyhow!("{}: {error}", cannot()))
}

/// Something was done.
pub fn note(message: &str) {
    tracing::info!("{}", text::line(message));
}

/// Something is wrong; it has been told, or is about to be.
pub fn warn(message: &str) {
    tracing::warn!("{}", text::line(message));
}
