//! A file of Codex, whole and with a restart.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lullwatch::source::Agent;

mod adapter;

fuzz_target!(|data: &[u8]| adapter::check(Agent::Codex, data));
