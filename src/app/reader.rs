//! The reading thread of the TUI: a read-only connection, from which it makes a picture whenever
//! something may have changed. The latest picture wins; the screen never waits for one.
//!
//! Full texts are read here too, from the transcripts by pointer, and verified: a file that is gone
//! or changed gives a sentence instead.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::Setting;
use crate::mirror::pointer::{self, Lost};
use crate::snapshot::{self, Beside, Picture, Pointer, Query};
use crate::source;
use crate::store::Reader;
use crate::ui::Reply;

/// How often another process's writes are looked for.
const LOOK: Duration = Duration::from_millis(400);
/// After a picture, the next one waits so many times as long as that one took: a busy store must not
/// keep a core busy.
const PAUSE_TIMES: i64 = 4;
/// Failures in a row before they are told: while the store is being made it cannot be read yet.
const FAILURES_MAX: u32 = 5;
/// Texts that wait to be read.
const TEXTS_MAX: usize = 32;
/// Longest full text shown, characters.
const TEXT_CHARS_MAX: usize = 200_000;

/// What the reading thread is told.
#[derive(Debug)]
pub enum Wish {
    /// Make pictures with this query from now on.
    Query(Query),
    /// The store may have changed; this is known beside it.
    Beside(Box<Beside>),
    /// Read the full text of a message.
    Message {
        /// Its id.
        id: i64,
        /// Where it lies.
        pointer: Pointer,
    },
}

/// Runs until nobody sends wishes any more.
pub fn run(
    setting: &Setting,
    wishes: &Receiver<Wish>,
    pictures: &watch::Sender<Option<Arc<Picture>>>,
    replies: &mpsc::Sender<Reply>,
    mut query: Query,
) {
    let texts = texts(replies.clone());
    let mut beside = Beside { host: setting.host.clone(), ..Beside::default() };
    // What the store had is on the screen before the first look at any file.
    let mut reader = Reader::open(&setting.config.db).ok();
    let mut seen_version = None;
    let mut changed = reader.is_some();
    let mut not_before_ms = 0;
    let mut failures = 0;
    loop {
        let pause_ms = not_before_ms - setting.clock.awake_ms();
        let pause = Duration::from_millis(pause_ms.max(0).cast_unsigned());
        let wait = if changed && reader.is_some() { pause } else { LOOK };
        match wishes.recv_timeout(wait) {
            Ok(wish) => {
                for wish in std::iter::once(wish).chain(wishes.try_iter()) {
                    match wish {
                        Wish::Query(new) => {
                            query = new;
                            changed = true;
                            // Somebody waits for it.
                            not_before_ms = 0;
                        }
                        Wish::Beside(new) => {
                            beside = *new;
                            changed = true;
                        }
                        Wish::Message { id, pointer } => {
                            if texts.try_send((id, pointer)).is_err() {
                                let text = Err("others are still being read; ask again".to_owned());
                                let _ = replies.try_send(Reply::Message { id, text });
                            }
                        }
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if reader.is_none() {
            reader = Reader::open(&setting.config.db).ok();
            changed |= reader.is_some();
        }
        let Some(open) = reader.as_mut() else { continue };
        let version = open.data_version().ok();
        changed |= version != seen_version;
        let began_ms = setting.clock.awake_ms();
        if !changed || began_ms < not_before_ms {
            continue;
        }
        (changed, seen_version) = (false, version);
        let now_ms = setting.clock.now_ms();
        match open.read(|tx| snapshot::picture(tx, &query, &beside, now_ms)) {
            Ok(picture) => {
                failures = 0;
                // Nobody looks any more: the next wish tells.
                let _ = pictures.send(Some(Arc::new(picture)));
            }
            Err(error) => {
                failures += 1;
                if failures == FAILURES_MAX {
                    let _ = replies.try_send(Reply::Failed(error.to_string()));
                }
                reader = None;
                changed = true;
            }
        }
        let ended_ms = setting.clock.awake_ms();
        not_before_ms = ended_ms + (ended_ms - began_ms) * PAUSE_TIMES;
    }
}

/// Reads full texts in a thread of its own, one after the other: of a packed log all before a message
/// may have to be decoded, and no picture waits for that. It ends with the reader.
fn texts(replies: mpsc::Sender<Reply>) -> SyncSender<(i64, Pointer)> {
    let (ask, asked) = sync_channel::<(i64, Pointer)>(TEXTS_MAX);
    let read = move || {
        for (id, pointer) in asked {
            let text = full_text(&pointer);
            // The screen that asked may be gone.
            let _ = replies.blocking_send(Reply::Message { id, text });
        }
    };
    // Without a thread nobody takes what is asked, which is told then.
    let _ = std::thread::Builder::new().name("texts".to_owned()).spawn(read);
    ask
}

/// The full text of a message, or a sentence that says why it cannot be had.
fn full_text(pointer: &Pointer) -> Result<String, String> {
    let path = PathBuf::from(OsString::from_vec(pointer.path.clone()));
    let bytes = pointer::read(&path, pointer.frame, (pointer.offset, pointer.bytes), pointer.hash)
        .map_err(|lost| {
            match lost {
                Lost::Gone => "the transcript is gone; this is what was kept of the message",
                Lost::Changed => "the transcript has changed; this is what was kept of the message",
                Lost::TooLong => "too long to read whole; this is what was kept of the message",
                Lost::Unreadable => "the transcript cannot be read; this is what was kept of it",
            }
            .to_owned()
        })?;
    Ok(source::display::text(&bytes, TEXT_CHARS_MAX))
}
