//! Process evidence: which processes are on which session, what they say, and who has left.
//!
//! - `scope`: where an observation holds; `proc`: processes; `registry`: Claude's entries;
//!   `locks`: who holds a lock, without taking it.
//!
//! All of it is plain data with a sentence that says why; nothing here decides a status. Unknown is
//! a value of its own, and never means gone. The room knows no transcripts, no store and no clock.

pub mod locks;
pub mod proc;
pub mod registry;
pub mod scope;
#[cfg(test)]
mod testing;
