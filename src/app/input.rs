//! What the terminal sends, as keys: our own reader, because the event reader of the terminal
//! library never returns once the terminal is gone, and a monitor that outlives its terminal burns
//! a core. Here an end of input is an end.
//!
//! While we are a job in the background, input is the shell's. Reading it then would stop us by
//! SIGTTIN, again after every signal that wakes us, so that none could end us any more; blocked in
//! this thread, it makes the read fail instead.
//!
//! What the bytes mean is for [`decode`].

use std::io::{self, Read as _};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use tokio::sync::mpsc;

use crate::app::terminal;

mod decode;

pub use decode::{Decoder, Input};

/// Bytes read at a time.
const READ_BYTES_MAX: usize = 4_096;
/// Reads that may wait.
const READS_MAX: usize = 16;

/// Between two reads of a terminal that has nothing for us.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads the terminal in a thread of its own, until it ends: the channel closes then.
pub fn reader() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(READS_MAX);
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        // Where it cannot be blocked, the background stops us as it does everybody.
        let _ = SigSet::from(Signal::SIGTTIN).thread_block();
        let mut buffer = vec![0; READ_BYTES_MAX];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = buffer.iter().take(read).copied().collect();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Somebody made the terminal non-blocking; it must not make us spin.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::park_timeout(PAUSE);
                }
                Err(_) if !terminal::is_ours() => thread::park_timeout(PAUSE),
                Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}
