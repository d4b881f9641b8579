//! The TUI's threads: the worker that writes, the reader that makes pictures, and the main thread
//! that draws. All channels are bounded; none of the threads ever waits for the screen.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::reader::{self, Wish};
use super::tui::{self, Feed, Notify, Options, Request};
use super::worker::{self, News, Order};
use super::{Exit, Setting, complain, log, once, signals};
use crate::config;
use crate::snapshot::Picture;
use crate::ui::theme::Theme;
use crate::ui::{self, Glyphs, Reply, Switch};

/// Orders and wishes that wait.
const QUEUE_MAX: usize = 256;
/// Replies that wait for the screen.
const REPLIES_MAX: usize = 64;

/// Runs the TUI until the user or a signal ends it.
pub fn run(setting: &Setting) -> anyhow::Result<Exit> {
    let query = once::query(setting);
    let (orders_in, orders) = mpsc::sync_channel(QUEUE_MAX);
    let (wishes_in, wishes) = mpsc::sync_channel(QUEUE_MAX);
    let (requests_in, requests) = mpsc::sync_channel(QUEUE_MAX);
    let (pictures_in, pictures) = tokio::sync::watch::channel::<Option<Arc<Picture>>>(None);
    let (replies_in, replies) = tokio::sync::mpsc::channel(REPLIES_MAX);
    let (hopeless_in, hopeless) = tokio::sync::mpsc::channel(1);

    let worker = {
        let setting = setting.clone();
        let (own, wishes, replies) = (orders_in.clone(), wishes_in.clone(), replies_in.clone());
        thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || {
                let mut teller = Teller { wishes, replies, hopeless: hopeless_in, trouble: false };
                worker::run(&setting, &orders, own, &mut |news| teller.pass_on(news));
            })
            .context("cannot start the worker thread")?
    };
    let (reading, read) = mpsc::channel::<()>();
    {
        let (setting, query) = (setting.clone(), query.clone());
        thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || {
                reader::run(&setting, &wishes, &pictures_in, &replies_in, query);
                drop(reading);
            })
            .context("cannot start the reader thread")?;
    }
    {
        let orders = orders_in.clone();
        thread::Builder::new()
            .name("requests".to_owned())
            .spawn(move || forward(&requests, &orders, &wishes_in))
            .context("cannot start the request thread")?;
    }
    let feed = Feed { pictures, replies, hopeless, requests: requests_in };
    let outcome = tui::run(feed, options(setting, query));
    // The worker finishes its step; a transaction is committed whole or not at all, so a process
    // that cannot wait loses nothing either.
    let _ = orders_in.send(Order::Stop);
    if !matches!(outcome, Ok(tui::Exit::HangUp)) {
        let _ = worker.join();
        // Nobody tells the reader anything any more. With its connection the log stays behind.
        let _ = read.recv_timeout(READER_WAIT);
    }
    match outcome? {
        tui::Exit::Quit => Ok(Exit::Fine),
        tui::Exit::Signal(signal) => {
            if let Some(line) = signals::farewell(signal) {
                complain(&line);
            }
            Ok(Exit::Signal(signal))
        }
        tui::Exit::HangUp => Ok(Exit::Signal(signals::HANG_UP)),
    }
}

/// How long the reader is waited for at the end.
const READER_WAIT: Duration = Duration::from_secs(1);

fn options(setting: &Setting, query: crate::snapshot::Query) -> Options {
    let config = &setting.config;
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let theme = match config.theme {
        _ if no_color || config.color == config::Color::Never => Theme::Mono,
        config::Theme::Dark => Theme::Dark,
        config::Theme::Light => Theme::Light,
        config::Theme::Mono => Theme::Mono,
    };
    let notify = match config.notify {
        config::Notify::Off => Notify::Off,
        config::Notify::Bell => Notify::Bell,
        config::Notify::Osc9 => Notify::Osc9,
        config::Notify::Osc777 => Notify::Osc777,
    };
    let switch = |on: bool| if on { Switch::On } else { Switch::Off };
    let clock = setting.clock;
    Options {
        ui: ui::Options {
            theme,
            glyphs: if config.ascii { Glyphs::Ascii } else { Glyphs::Unicode },
            mouse: switch(config.mouse),
            notify: switch(config.notify != config::Notify::Off),
            zone: setting.zone,
            home: std::env::var("HOME").ok(),
            query,
        },
        notify,
        tmux: std::env::var_os("TMUX").is_some(),
        now: Box::new(move || clock.now_ms()),
        fault: None,
    }
}

/// Passes on what the worker tells, to those who wait for it.
struct Teller {
    wishes: SyncSender<Wish>,
    replies: tokio::sync::mpsc::Sender<Reply>,
    hopeless: tokio::sync::mpsc::Sender<anyhow::Error>,
    /// A trouble stands on the screen.
    trouble: bool,
}

impl Teller {
    fn pass_on(&mut self, news: News) {
        // A full channel means that much is told already; the next news tells the rest.
        match news {
            News::Changed { beside, .. } => {
                if std::mem::take(&mut self.trouble) {
                    self.tell(Reply::Trouble(None));
                }
                let _ = self.wishes.try_send(Wish::Beside(beside));
            }
            News::Acknowledged(acked, consumer) => {
                let ids = acked.acked.into_iter().chain(acked.already).collect();
                self.tell(Reply::Acknowledged { ids, consumer });
                if !acked.unknown.is_empty() {
                    let why = "no such entry in this ledger".to_owned();
                    self.tell(Reply::NotAcknowledged { ids: acked.unknown, why });
                }
            }
            News::NotAcknowledged { ids, why } => self.tell(Reply::NotAcknowledged { ids, why }),
            News::Fault(why) => {
                self.trouble = true;
                log::warn(&why);
                self.tell(Reply::Trouble(Some(why)));
            }
            News::Hopeless(error) => {
                let _ = self.hopeless.try_send(error);
            }
        }
    }

    fn tell(&self, reply: Reply) {
        let _ = self.replies.try_send(reply);
    }
}

/// Requests of the screen, each to the thread that can answer it; ends with the screen.
fn forward(requests: &Receiver<Request>, orders: &SyncSender<Order>, wishes: &SyncSender<Wish>) {
    for request in requests {
        let sent = match request {
            Request::Query(query) => wishes.send(Wish::Query(query)).is_ok(),
            Request::ReadMessage { id, pointer } => {
                wishes.send(Wish::Message { id, pointer }).is_ok()
            }
            Request::Acknowledge { ids, consumer } => {
                orders.send(Order::Acknowledge { ids, consumer }).is_ok()
            }
            Request::Rescan => orders.send(Order::Rescan).is_ok(),
            Request::Suspend(done) => orders.send(Order::Suspend(done)).is_ok(),
            Request::Resumed => orders.send(Order::Resume).is_ok(),
        };
        if !sent {
            return;
        }
    }
}
