//! What a store holds, as text: how tests compare whole stores.

use std::fmt::Write;

use rusqlite::types::ValueRef;

use super::{Result, Tx};

impl Tx<'_> {
    /// The rows of some queries as text, columns joined by `|`: for tests that compare whole
    /// stores. No command prints this.
    pub fn dump(&self, queries: &[&str]) -> Result<String> {
        let mut text = String::new();
        for sql in queries {
            let mut statement = self.0.prepare(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    let gap = if column == 0 { "" } else { "|" };
                    let _ = match row.get_ref(column)? {
                        ValueRef::Null => write!(text, "{gap}"),
                        ValueRef::Integer(number) => write!(text, "{gap}{number}"),
                        ValueRef::Real(number) => write!(text, "{gap}{number}"),
                        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                            write!(text, "{gap}{}", String::from_utf8_lossy(bytes))
                        }
                    };
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}
