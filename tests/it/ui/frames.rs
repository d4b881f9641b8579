//! What the screen shows, frame by frame: panes, sizes and states as snapshots.

use lullwatch::lifecycle::Windows;
use lullwatch::snapshot::{Picture, RootState};
use lullwatch::ui::msg::{Msg, Reply};
use lullwatch::ui::theme::Theme;
use lullwatch::ui::{Glyphs, Options};

use super::{fixture, press, screen, showing, showing_with, styled, tell};

const SIZES: [(u16, u16); 4] = [(80, 24), (60, 15), (120, 40), (200, 50)];

#[track_caller]
fn check(name: &str, text: &str) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("ui_{name}"), text);
    });
}

#[test]
fn every_pane_at_every_size() {
    for (pane, keys) in [
        ("sessions", ""),
        ("audit", "2"),
        ("ledger", "3jx"),
        ("compactions", "4"),
        ("detail", "jjj<enter>"),
    ] {
        for (width, height) in SIZES {
            let mut model = showing(fixture::many(), width, height);
            press(&mut model, keys);
            check(&format!("{pane}_{width}x{height}"), &screen(&model));
        }
    }
}

#[test]
fn every_tab_of_an_opened_session() {
    for (tab, keys) in [("why", "l"), ("timeline", "ll"), ("brackets", "lll"), ("agents", "llll")] {
        let mut model = showing(fixture::many(), 80, 24);
        press(&mut model, &format!("jjj<enter>{keys}"));
        check(&format!("detail_{tab}_80x24"), &screen(&model));
    }
}

#[test]
fn what_lies_over_the_screen() {
    for (name, keys, width, height) in [
        ("help_80x24", "?", 80, 24),
        ("help_60x15", "?jjj", 60, 15),
        ("help_200x50", "?", 200, 50),
        ("sort_menu", "sj", 80, 24),
        ("resume", "r", 80, 24),
        ("acknowledge", "3xxa", 80, 24),
        ("consumer", "3cpager", 80, 24),
        ("warnings", "w", 80, 24),
        ("filter_typing", "/payments", 80, 24),
    ] {
        let mut model = showing(fixture::many(), width, height);
        press(&mut model, keys);
        check(name, &screen(&model));
    }
}

#[test]
fn narrowed_lists_say_so() {
    for (name, keys) in [
        ("filtered_to_none", "/no such thing<enter>"),
        ("only_idle", "fff"),
        ("sorted_by_title", "sjjj<enter><space>"),
        ("audit_filtered_to_none", "2/zzz<enter>"),
    ] {
        let mut model = showing(fixture::many(), 80, 24);
        press(&mut model, keys);
        check(name, &screen(&model));
    }
}

#[test]
fn empty_and_broken_states_have_a_sentence_and_a_next_step() {
    for (pane, keys) in [("sessions", ""), ("audit", "2"), ("ledger", "3"), ("compactions", "4")] {
        let mut model = showing(fixture::empty(), 80, 24);
        press(&mut model, keys);
        check(&format!("empty_{pane}"), &screen(&model));
    }
    let mut nobody = fixture::empty();
    for root in &mut nobody.snapshot.mirror.roots {
        root.state = RootState::Missing;
    }
    check("no_agents", &screen(&showing(nobody, 80, 24)));

    let loading = lullwatch::ui::Model::new(Options::default(), 80, 24, fixture::NOW_MS);
    check("loading", &screen(&loading));

    let mut catching_up = fixture::many();
    catching_up.snapshot.mirror.backlog_bytes = 112_000_000;
    catching_up.snapshot.mirror.complete = false;
    catching_up.snapshot.windows = Windows { live_ms: 90_000, ended_ms: 7_200_000 };
    let mut model = showing(catching_up.clone(), 80, 24);
    catching_up.snapshot.at_ms += 2_000;
    catching_up.snapshot.mirror.backlog_bytes = 52_000_000;
    tell(&mut model, Msg::Picture(std::sync::Arc::new(catching_up)));
    check("catching_up", &screen(&model));

    let mut trouble = fixture::many();
    trouble.snapshot.mirror.writer = false;
    trouble.snapshot.mirror.writer_pid = Some(4711);
    trouble.snapshot.mirror.writer_stalled = true;
    trouble.snapshot.mirror.warnings = vec![
        "no more watches (fs.inotify.max_user_watches): polling every 4 s instead".to_owned(),
        "root ~/.codex/sessions is gone: its sessions keep their status".to_owned(),
    ];
    let mut model = showing(trouble, 80, 24);
    check("warnings_in_the_frame", &screen(&model));
    let sentence = "the store cannot be written (disk full): free space, it goes on by itself";
    tell(&mut model, Msg::Reply(Reply::Trouble(Some(sentence.to_owned()))));
    tell(
        &mut model,
        Msg::Reply(Reply::Failed("cannot acknowledge: database is locked".to_owned())),
    );
    check("store_unwritable", &screen(&model));
}

#[test]
fn one_session_and_the_selected_row_that_is_open_again() {
    let one = |index: usize| {
        let mut picture = fixture::many();
        picture.snapshot.sessions = vec![fixture::sessions().remove(index)];
        picture
    };
    check("one_80x24", &screen(&showing(one(6), 80, 24)));
    check("open_again_80x24", &screen(&showing(one(9), 80, 24)));
    check("unchecked_80x24", &screen(&showing(one(12), 80, 24)));
}

#[test]
fn colours_by_role_in_every_theme() {
    for (name, theme) in [("dark", Theme::Dark), ("light", Theme::Light), ("mono", Theme::Mono)] {
        let options = Options { theme, ..Options::default() };
        let mut model = showing_with(options, fixture::many(), 80, 24);
        check(&format!("styled_sessions_{name}"), &styled(&model));
        press(&mut model, "jjj<enter>");
        check(&format!("styled_detail_{name}"), &styled(&model));
    }
    let mut model = showing(fixture::many(), 80, 24);
    for (name, keys) in [("ledger", "3jx"), ("audit", "2"), ("compactions", "4")] {
        press(&mut model, keys);
        check(&format!("styled_{name}_dark"), &styled(&model));
    }
}

#[test]
fn ascii_alone_for_our_own_signs() {
    let options = Options { glyphs: Glyphs::Ascii, ..Options::default() };
    let without_wide: Picture = {
        let mut picture = fixture::many();
        picture.snapshot.sessions.remove(6);
        picture
    };
    for keys in ["", "2", "3x", "4", "?", "jjj<enter>", "lll", "s", "r", "w"] {
        let mut model = showing_with(options.clone(), without_wide.clone(), 120, 40);
        press(&mut model, keys);
        let text = screen(&model);
        assert!(text.is_ascii(), "{keys:?}: {:?}", text.chars().find(|c| !c.is_ascii()));
    }
    let mut model = showing_with(options, fixture::many(), 80, 24);
    check("ascii_sessions_80x24", &screen(&model));
    press(&mut model, "jjj<enter>");
    check("ascii_detail_80x24", &screen(&model));
}

#[test]
fn sizes_below_the_smallest_get_one_line() {
    for (width, height) in [(59, 24), (80, 14), (31, 10), (5, 3), (1, 1)] {
        let text = screen(&showing(fixture::many(), width, height));
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 1, "{width}x{height}: {text}");
    }
    let text = screen(&showing(fixture::many(), 53, 10));
    assert!(text.starts_with("lullwatch needs 60x15, is 53x10\n"), "{text}");
    // A terminal that does not know its size is taken for the usual one.
    assert_eq!(screen(&showing(fixture::many(), 0, 0)), screen(&showing(fixture::many(), 80, 24)));
}
