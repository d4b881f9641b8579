//! The two windows of a store: fixed when it is created, the same for every process.
//!
//! Two processes with different windows on one store would take back each other's statuses, so one
//! that is given others than the store has refuses, and names the command that changes them.

use super::Windows;
use super::phrase::span;
use crate::store::{Reader, Store, StoreError, Tx, meta, sessions};

/// Windows as somebody asks for them; `None`: whatever the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// Live window, ms.
    pub live_ms: Option<i64>,
    /// Ended window, ms.
    pub ended_ms: Option<i64>,
}

/// Windows that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum WindowsError {
    /// The store has others.
    #[error(
        "this store has a live window of {} and an ended window of {}\n\
        hint: `lullwatch config --set-windows LIVE ENDED` changes them for everyone",
        span(.0.live_ms), span(.0.ended_ms)
    )]
    Mismatch(Windows),
    /// They make no sense.
    #[error(
        "a live window of {} and an ended window of {} leave no room for a lull\n\
        hint: the ended window is longer than the live window, and both are longer than zero",
        span(.0.live_ms), span(.0.ended_ms)
    )]
    Invalid(Windows),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store's windows; the defaults while none are fixed. Writes nothing.
pub fn windows_of(tx: &Tx<'_>) -> crate::store::Result<Windows> {
    Ok(meta::windows(tx)?.unwrap_or_default())
}

/// The store's windows, for a process that may not fix them: what is asked for must be what they are.
pub fn windows_beside(reader: &mut Reader, asked: Asked) -> Result<Windows, WindowsError> {
    let stored = reader.read(windows_of)?;
    let is = |asked: Option<i64>, stored: i64| asked.is_none_or(|asked| asked == stored);
    if is(asked.live_ms, stored.live_ms) && is(asked.ended_ms, stored.ended_ms) {
        Ok(stored)
    } else {
        Err(WindowsError::Mismatch(stored))
    }
}

/// The store's windows, fixed to what is asked for if they are not fixed yet.
pub fn windows_for(store: &mut Store, asked: Asked) -> Result<Windows, WindowsError> {
    let stored = store.read(meta::windows)?;
    let base = stored.unwrap_or_default();
    let wanted = Windows {
        live_ms: asked.live_ms.unwrap_or(base.live_ms),
        ended_ms: asked.ended_ms.unwrap_or(base.ended_ms),
    };
    match stored {
        Some(stored) if wanted == stored => Ok(stored),
        Some(stored) => Err(WindowsError::Mismatch(stored)),
        None => {
            check(wanted)?;
            // Another process may have fixed them since: the first one's stand.
            let fixed = store.write(|tx| match meta::windows(tx)? {
                Some(fixed) => Ok(fixed),
                None => meta::set_windows(tx, wanted).map(|()| wanted),
            })?;
            if fixed == wanted { Ok(fixed) } else { Err(WindowsError::Mismatch(fixed)) }
        }
    }
}

/// Changes the store's windows, and has every live session decided on again under them.
pub fn set_windows(store: &mut Store, windows: Windows) -> Result<(), WindowsError> {
    check(windows)?;
    store.write(|tx| {
        meta::set_windows(tx, windows)?;
        sessions::mark_live_dirty(tx)
    })?;
    Ok(())
}

fn check(windows: Windows) -> Result<(), WindowsError> {
    if windows.live_ms <= 0 || windows.ended_ms <= windows.live_ms {
        return Err(WindowsError::Invalid(windows));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Windows = Windows { live_ms: 3_000, ended_ms: 10_000 };

    fn asked(live_ms: Option<i64>, ended_ms: Option<i64>) -> Asked {
        Asked { live_ms, ended_ms }
    }

    #[test]
    fn the_first_process_fixes_them_and_others_are_refused() {
        let mut store = Store::in_memory(1).unwrap();
        assert_eq!(store.read(windows_of).unwrap(), Windows::default());
        assert_eq!(windows_for(&mut store, asked(Some(3_000), Some(10_000))).unwrap(), SHORT);
        assert_eq!(windows_for(&mut store, Asked::default()).unwrap(), SHORT);
        assert_eq!(windows_for(&mut store, asked(Some(3_000), None)).unwrap(), SHORT);
        let refused = windows_for(&mut store, asked(Some(4_000), None)).unwrap_err();
        assert!(matches!(refused, WindowsError::Mismatch(SHORT)));
        assert!(refused.to_string().contains("lullwatch config --set-windows"), "{refused}");
        assert_eq!(store.read(windows_of).unwrap(), SHORT);
    }

    #[test]
    fn asking_for_what_is_fixed_writes_nothing() {
        let mut store = Store::in_memory(1).unwrap();
        windows_for(&mut store, Asked::default()).unwrap();
        let before = store.rows_written();
        windows_for(&mut store, Asked::default()).unwrap();
        assert_eq!(store.rows_written(), before);
    }

    #[test]
    fn windows_that_leave_no_room_for_a_lull_are_refused() {
        let mut store = Store::in_memory(1).unwrap();
        for (live_ms, ended_ms) in [(0, 10), (-1, 10), (10, 10), (11, 10)] {
            let refused = set_windows(&mut store, Windows { live_ms, ended_ms }).unwrap_err();
            assert!(matches!(refused, WindowsError::Invalid(_)), "{live_ms} {ended_ms}");
        }
        assert_eq!(store.read(meta::windows).unwrap(), None);
    }
}
