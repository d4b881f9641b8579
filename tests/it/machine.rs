//! Random lives of sessions against a reference model that is simple enough to be believed.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::indexing_slicing, reason = "the model and the store have the same sessions")]

use lullwatch::delivery::{self, OPERATOR, Which};
use lullwatch::lifecycle::{Entity, Status};
use proptest::prelude::*;

use crate::bed::{Bed, DAY, ENDED, HOUR, LIVE, MINUTE, SECOND, T0};

const SESSIONS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Action {
    /// A record of that session, stamped so long ago; its first one makes the session.
    Activity { session: usize, ago: i64 },
    /// An end marker at the end of its transcript, naming an end so long ago.
    EndMarker { session: usize, ago: i64 },
    /// Time passes.
    Silence(i64),
    /// A pass.
    Reconcile,
    /// The program was killed and starts again.
    Reopen,
    /// The operator acknowledges the oldest entries.
    Acknowledge(usize),
}

fn any_action() -> impl Strategy<Value = Action> {
    let session = 0..SESSIONS;
    let span = proptest::sample::select(vec![
        0,
        1,
        SECOND,
        MINUTE,
        LIVE - 1,
        LIVE,
        LIVE + 1,
        HOUR,
        ENDED - 1,
        ENDED,
        ENDED + 1,
        3 * DAY,
    ]);
    prop_oneof![
        4 => (session.clone(), span.clone())
            .prop_map(|(session, ago)| Action::Activity { session, ago }),
        1 => (session, 0..2 * MINUTE).prop_map(|(session, ago)| Action::EndMarker { session, ago }),
        4 => span.prop_map(Action::Silence),
        4 => Just(Action::Reconcile),
        1 => Just(Action::Reopen),
        1 => (0..3_usize).prop_map(Action::Acknowledge),
    ]
}

/// What one session should look like.
#[derive(Debug, Clone, Default)]
struct Model {
    row: Option<i64>,
    last: i64,
    marker: Option<i64>,
    status: Option<Status>,
    ended: Option<i64>,
    history: Vec<(Option<Status>, Status)>,
}

impl Model {
    fn reconcile(&mut self, now: i64) {
        let silence = now - self.last;
        if self.status.is_some_and(Status::is_terminal) {
            let resumed = self.marker.is_none() && self.ended.is_some_and(|end| self.last > end);
            if !resumed {
                return;
            }
            self.go(Status::Running, None);
        }
        if let Some(marker) = self.marker {
            let end = marker.min(now).max(self.last);
            if self.status.is_none() && end > T0 {
                self.go(Status::Idle, None);
            }
            self.go(Status::Completed, Some(end));
        } else if silence <= LIVE {
            self.go(Status::Running, None);
        } else if silence <= ENDED {
            self.go(Status::Idle, None);
        } else {
            if self.status.is_some() || self.last + ENDED > T0 {
                self.go(Status::Idle, None);
            }
            self.go(Status::Completed, Some(self.last));
        }
    }

    fn go(&mut self, to: Status, ended: Option<i64>) {
        if self.status != Some(to) {
            self.history.push((self.status, to));
            (self.status, self.ended) = (Some(to), ended);
        }
    }

    fn resumes(&self) -> usize {
        let back = (Some(Status::Completed), Status::Running);
        self.history.iter().filter(|hop| **hop == back).count()
    }

    fn ends(&self) -> usize {
        let end = |hop: &&(Option<Status>, Status)| hop.0.is_some() && hop.1 == Status::Completed;
        self.history.iter().filter(end).count()
    }
}

fn act(bed: &mut Bed, models: &mut [Model], acked: &mut usize, action: Action) {
    match action {
        Action::Activity { session, ago } => {
            let (model, at) = (&mut models[session], bed.now - ago);
            if let Some(row) = model.row {
                bed.activity(row, at);
                model.last = model.last.max(at);
            } else {
                model.row = Some(bed.session("claude", &session.to_string(), at));
                model.last = at;
            }
            model.marker = None;
        }
        Action::EndMarker { session, ago } => {
            let model = &mut models[session];
            if let Some(row) = model.row {
                bed.end_marker(row, bed.now - ago);
                model.marker = Some(bed.now - ago);
            }
        }
        Action::Silence(time) => bed.now += time,
        Action::Reconcile => {
            bed.pass();
            let written = bed.store.rows_written();
            let again = bed.pass();
            assert_eq!((again.moved.len(), bed.store.rows_written()), (0, written));
            for model in models.iter_mut().filter(|model| model.row.is_some()) {
                model.reconcile(bed.now);
            }
            compare(bed, models, *acked);
        }
        Action::Reopen => bed.reopen(),
        Action::Acknowledge(count) => {
            let now = bed.now;
            let entries = bed.store.read(|tx| delivery::pending(tx, OPERATOR, 100)).unwrap();
            let ids: Vec<i64> = entries.iter().take(count).map(|entry| entry.id).collect();
            for _ in 0..2 {
                let which = Which::Ids(&ids);
                let done = bed.store.write(|tx| delivery::ack(tx, OPERATOR, which, now)).unwrap();
                *acked += done.acked.len();
            }
        }
    }
}

fn compare(bed: &mut Bed, models: &[Model], acked: usize) {
    let rows = models.iter().filter_map(|model| Some((model.row?, model)));
    for (row, model) in rows {
        assert_eq!(bed.status(row), model.status);
        assert_eq!(bed.end(row).map(|end| end.at_ms), model.ended);
        assert_eq!(model.ended.is_some(), model.status.is_some_and(Status::is_terminal));
        let history: Vec<(Option<Status>, Status)> = bed
            .history(Entity::session(row))
            .into_iter()
            .map(|row| (row.previous, row.status))
            .collect();
        assert_eq!(history, model.history);
    }
    let sum = |count: fn(&Model) -> usize| models.iter().map(count).sum::<usize>() as u64;
    let totals = bed.audit();
    assert_eq!(totals.overrides + totals.overrides_after_exit, sum(Model::resumes));
    assert_eq!((totals.rejections, totals.migrations), (0, 0));
    assert_eq!(bed.pending() + acked as u64, sum(Model::ends));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_life_is_told_as_the_model_tells_it(
        actions in proptest::collection::vec(any_action(), 1..40),
    ) {
        let mut bed = Bed::new();
        let mut models = vec![Model::default(); SESSIONS];
        let mut acked = 0;
        let mut before = Vec::new();
        for action in actions {
            act(&mut bed, &mut models, &mut acked, action);
            let rows = bed.dump();
            let history: Vec<String> =
                rows.into_iter().filter(|row| row.starts_with("status_transitions")).collect();
            assert!(history.starts_with(&before), "history was rewritten");
            before = history;
        }
        act(&mut bed, &mut models, &mut acked, Action::Reconcile);
    }
}
