//! The terminal, borrowed: whatever happens, it is given back as it was.
//!
//! The guard is armed before the first mode is changed, so a failure half-way restores too. It
//! restores exactly once: on drop, when told to, or in the panic hook, before the panic's message
//! is printed. Signals do not come here; the loop ends on them, and the guard is dropped.
//!
//! A job in the background owns no terminal: whoever sets its modes there is stopped by SIGTTOU, as
//! often as it tries. So its modes are the shell's then, and nothing here touches them.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::ui::Switch;

/// Alternate screen, bracketed paste, no cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?2004h\x1b[?25l";
/// The off-switch of everything that may be on, a synchronized update among them.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";
/// Presses and the wheel, with coordinates that fit large screens.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// The borrowed terminal.
#[derive(Debug)]
pub struct Guard {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    armed: AtomicBool,
    mouse: AtomicBool,
    /// As the terminal was.
    modes: Mutex<Option<Termios>>,
}

impl Guard {
    /// Borrows the terminal. `elsewhere` is told of panics in other threads than this one, as long
    /// as the terminal is borrowed: their messages would be lost on the alternate screen.
    pub fn enter(
        mouse: Switch,
        elsewhere: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let guard = Self { state: Arc::default() };
        guard.hook(elsewhere);
        guard.take(mouse)?;
        Ok(guard)
    }

    /// Borrows it again after [`Guard::give_back`].
    pub fn take(&self, mouse: Switch) -> io::Result<()> {
        self.state.armed.store(true, Ordering::SeqCst);
        self.state.set_raw()?;
        write(ENTER)?;
        match mouse {
            Switch::On => self.mouse(Switch::On),
            Switch::Off => Ok(()),
        }
    }

    /// Gives it back; nothing happens when it has been given back before.
    pub fn give_back(&self) {
        self.state.give_back();
    }

    /// Switches mouse reports.
    pub fn mouse(&self, switch: Switch) -> io::Result<()> {
        match switch {
            Switch::On => {
                self.state.mouse.store(true, Ordering::SeqCst);
                write(MOUSE_ON)
            }
            Switch::Off => {
                self.state.mouse.store(false, Ordering::SeqCst);
                write(MOUSE_OFF)
            }
        }
    }

    fn hook(&self, elsewhere: impl Fn(String) + Send + Sync + 'static) {
        let state = Arc::clone(&self.state);
        let ours = std::thread::current().id();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if std::thread::current().id() == ours {
                state.give_back();
            } else if state.armed.load(Ordering::SeqCst) {
                return elsewhere(info.to_string());
            }
            before(info);
        }));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.state.give_back();
    }
}

impl State {
    fn set_raw(&self) -> io::Result<()> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        *self.modes.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
    }

    fn give_back(&self) {
        if !self.armed.swap(false, Ordering::SeqCst) {
            return;
        }
        let mouse = self.mouse.swap(false, Ordering::SeqCst);
        let modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner).take();
        if !is_ours() && !may_write() {
            return;
        }
        // Nothing to be done about errors here: the terminal may be gone.
        if mouse {
            let _ = write(MOUSE_OFF);
        }
        let _ = write(LEAVE);
        if let Some(modes) = modes.filter(|_| is_ours()) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        }
    }
}

/// Whether this process is in front, so that the terminal is its own to set.
pub fn is_ours() -> bool {
    // Where there is nothing to ask, whoever tries to set it is told why that cannot be.
    tcgetpgrp(io::stdin()).map_or(true, |front| front == getpgrp())
}

/// Whether a job in the background may write without being stopped.
fn may_write() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::TOSTOP))
}

/// Writes and flushes.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Drops what the terminal has sent and nobody has read.
pub fn drop_input() {
    // A terminal that is gone has nothing to drop.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// The terminal's size in columns and rows; zeros when it does not know.
pub fn size() -> (u16, u16) {
    crossterm::terminal::window_size().map_or((0, 0), |size| (size.columns, size.rows))
}
