//! How this program reads each agent's files, as a number that the store keeps with what was read.

use super::Agent;

impl Agent {
    /// Only grows: whoever lets an adapter say something else of the same bytes raises it, and every
    /// store then reads that agent's files anew. Version 1 is what stores without a number hold.
    pub const fn reading_version(self) -> i64 {
        match self {
            Self::Claude => 4,
            Self::Codex => 6,
            Self::Dsh => 3,
        }
    }
}
