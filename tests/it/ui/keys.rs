//! What keys do.

use std::sync::Arc;

use lullwatch::lifecycle::Status;
use lullwatch::snapshot::{CompactionRow, Hidden, Picture, Query};
use lullwatch::ui::keymap::BINDINGS;
use lullwatch::ui::msg::{Effect, Msg, Reply, Switch};
use lullwatch::ui::{Model, Options};

use super::{fixture, press, screen, showing, showing_with, tell};

fn many() -> Model {
    showing(fixture::many(), 80, 24)
}

fn selected(model: &Model) -> i64 {
    model.list(model.pane).selected().map_or(0, |item| item.id)
}

fn send(model: &mut Model, picture: Picture) -> Vec<Effect> {
    tell(model, Msg::Picture(Arc::new(picture)))
}

#[test]
fn every_binding_is_in_help() {
    let mut model = showing(fixture::many(), 200, 50);
    press(&mut model, "?");
    let tall = {
        model.height = 200;
        screen(&model)
    };
    for binding in BINDINGS {
        assert!(tall.contains(binding.help), "{binding:?} is not in the help:\n{tall}");
        for key in binding.keys {
            assert!(tall.contains(&key.label()), "{} is not in the help", key.label());
        }
    }
}

#[test]
fn the_selection_is_an_id_and_survives_every_refresh() {
    let mut model = many();
    assert_eq!(selected(&model), 1, "those who need a human come first");
    press(&mut model, "jjjj");
    assert_eq!(selected(&model), 5);
    let mut moved = fixture::many();
    moved.snapshot.sessions.rotate_left(5);
    send(&mut model, moved);
    assert_eq!(selected(&model), 5);
    send(&mut model, fixture::many());
    let mut gone = fixture::many();
    gone.snapshot.sessions.retain(|session| session.row_id != 5);
    send(&mut model, gone);
    assert_eq!(selected(&model), 6, "what has come to stand in its place");
}

#[test]
fn until_it_is_moved_the_selection_stays_on_what_needs_a_human() {
    let mut few = fixture::many();
    few.snapshot.sessions.drain(..5);
    let mut model = showing(few, 80, 24);
    assert_eq!(selected(&model), 6);
    send(&mut model, fixture::many());
    assert_eq!(selected(&model), 1);
}

#[test]
fn the_filter_lives_while_one_types_and_esc_takes_it_back() {
    let mut model = many();
    press(&mut model, "/retry");
    assert!(screen(&model).contains("/retry▌  1 of 13"), "{}", screen(&model));
    press(&mut model, "<enter>");
    assert_eq!(selected(&model), 4);
    assert!(screen(&model).contains("/retry  1 of 13"), "never hidden that a filter is on");
    press(&mut model, "<esc>");
    assert!(!screen(&model).contains("/retry"));
    press(&mut model, "/!claude<enter>");
    assert_eq!(model.sessions.items().count(), 6);
    press(&mut model, "<esc>/q?jk1 <bksp><enter>");
    assert_eq!(model.sessions.filter, "q?jk1", "letters are text while typing");
    press(&mut model, "/<c-u>pasted:");
    tell(&mut model, Msg::Paste("q\u{1b}[31m\nx".to_owned()));
    assert_eq!(model.sessions.filter, "pasted:q x");
}

#[test]
fn each_pane_has_a_filter_of_its_own() {
    let mut model = many();
    press(&mut model, "/retry<enter>3");
    assert_eq!(model.ledger.items().count(), 3);
    press(&mut model, "/superseded<enter>");
    assert_eq!(model.ledger.items().count(), 1);
    press(&mut model, "1");
    assert_eq!(model.sessions.items().count(), 1);
}

#[test]
fn counts_in_the_header_agree_with_the_list() {
    for keys in ["", "ff", "/parser<enter>", "sj<enter>"] {
        let mut model = many();
        press(&mut model, keys);
        let text = screen(&model);
        for words in ["▲ 3 need you", "● 4 running", "◐ 4 idle", "✓ 3 completed", "✗ 1", "? 1"]
        {
            assert!(text.contains(words), "{keys:?}: {words}\n{text}");
        }
    }
    let mut model = many();
    press(&mut model, "ff");
    let rows = model.sessions.items().count();
    assert_eq!(rows, 5, "four checked and the one that was");
    let text = screen(&model);
    assert!(text.contains("only running  5 of 13"), "{text}");
    assert!(text.contains("running 3 · 1 above · 1 unchecked"), "{text}");
}

#[test]
fn sorting_keeps_those_who_need_a_human_on_top_and_turns_round() {
    let ids = |model: &Model| model.sessions.items().map(|item| item.id).collect::<Vec<_>>();
    let mut model = many();
    press(&mut model, "sjjj<enter>");
    let forward = ids(&model);
    assert_eq!(&forward[..3], [1, 3, 2], "by title among themselves");
    press(&mut model, "s<enter>");
    let mut backward = ids(&model);
    assert_eq!(&backward[..3], [2, 3, 1]);
    backward[..3].reverse();
    backward[3..].reverse();
    assert_eq!(backward[3..], forward[3..]);
    press(&mut model, "sg<enter>");
    assert_eq!(ids(&model)[0], 1);
}

#[test]
fn acknowledging_asks_first_and_no_is_the_default() {
    let mut model = many();
    for keys in ["3ja<enter>", "a<esc>", "an", "aq"] {
        let effects = press(&mut model, keys);
        assert_eq!(effects, [], "{keys:?}");
    }
    let effects = press(&mut model, "ay");
    let operator = || "operator".to_owned();
    assert_eq!(effects, [Effect::Acknowledge { ids: vec![9], consumer: operator() }]);
    assert!(screen(&model).contains("acknowledging…"));
    tell(&mut model, Msg::Reply(Reply::NotAcknowledged { ids: vec![9], why: "locked".into() }));
    assert!(!screen(&model).contains("acknowledging…"));
    assert!(screen(&model).contains("locked"), "errors stay until a key");
    tell(&mut model, Msg::Now(fixture::NOW_MS + 60_000));
    assert!(screen(&model).contains("locked"));
    let effects = press(&mut model, "gxxay");
    assert_eq!(effects, [Effect::Acknowledge { ids: vec![1, 9], consumer: operator() }]);
    let mut after = fixture::many();
    after.ledger.retain(|row| row.id == 12);
    send(&mut model, after);
    assert_eq!(model.acknowledging.len(), 0);
    assert_eq!(selected(&model), 12);
}

#[test]
fn another_consumer_is_asked_for_and_what_is_seen_is_acknowledged_until_it_is_here() {
    let mut model = many();
    let effects = press(&mut model, "3cpager<enter>");
    let query = Query { consumer: Some("pager".to_owned()), ..Query::default() };
    assert_eq!(effects, [Effect::Query(query)]);
    let effects = press(&mut model, "ay");
    assert!(
        matches!(&effects[..], [Effect::Acknowledge { consumer, .. }] if consumer == "operator")
    );
    let mut theirs = fixture::many();
    theirs.snapshot.ledger.consumer = "pager".to_owned();
    send(&mut model, theirs);
    assert!(screen(&model).contains("for pager"));
}

#[test]
fn a_frozen_picture_stands_still_and_says_so() {
    let mut model = many();
    press(&mut model, "<space>");
    let before = screen(&model);
    assert!(before.contains("PAUSED"));
    let mut later = fixture::many();
    later.snapshot.sessions.truncate(1);
    later.snapshot.at_ms += 600_000;
    send(&mut model, later);
    tell(&mut model, Msg::Now(fixture::NOW_MS + 600_000));
    assert_eq!(screen(&model), before, "not even an age moves");
    press(&mut model, "<space>");
    assert_eq!(model.sessions.items().count(), 1);
}

#[test]
fn a_session_can_be_opened_while_frozen() {
    let mut model = many();
    press(&mut model, "<space>jjj<enter>");
    assert!(screen(&model).contains("cargo test -p payments"), "{}", screen(&model));
    assert!(screen(&model).contains("PAUSED"));
}

#[test]
fn opening_follows_the_end_and_esc_goes_back_one_layer() {
    let mut model = many();
    let effects = press(&mut model, "jjj<enter>");
    let query = Query { open: Some(4), ..Query::default() };
    assert_eq!(effects, [Effect::Query(query)]);
    assert!(screen(&model).contains("FOLLOW"));
    let last = model.detail.at;
    assert_eq!(last + 1, model.detail.lines.len());
    press(&mut model, "k");
    assert!(!screen(&model).contains("FOLLOW"), "moving up lets go");
    press(&mut model, "G");
    assert!(screen(&model).contains("FOLLOW"));
    press(&mut model, "hj<enter>");
    assert_eq!(model.detail.stack, [4, 102], "a sub-agent, opened in its parent");
    press(&mut model, "<esc>");
    assert_eq!(model.detail.stack, [4]);
    let effects = press(&mut model, "<esc>");
    assert_eq!(effects, [Effect::Query(Query::default())]);
    assert_eq!(selected(&model), 4);
}

#[test]
fn tool_calls_are_folded_and_the_full_text_comes_on_demand() {
    let mut model = many();
    press(&mut model, "jjj<enter>gjjjjjjj");
    let effects = press(&mut model, "<enter>");
    let [Effect::ReadMessage { id: 4, pointer }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(pointer.offset, 400);
    assert!(screen(&model).contains("reading the transcript…"));
    let full = Ok("running 12 tests\n\ttest a ... ok\u{1b}[2J\ntest b ... FAILED".to_owned());
    tell(&mut model, Msg::Reply(Reply::Message { id: 4, text: full }));
    let text = screen(&model);
    assert!(text.contains("  └ running 12 tests\n"), "{text}");
    assert!(text.contains("test b ... FAILED\n"), "{text}");
    let gone = Err("the file is gone".to_owned());
    tell(&mut model, Msg::Reply(Reply::Message { id: 4, text: gone }));
    assert!(screen(&model).contains("only the preview: the file is gone"));
    assert_eq!(press(&mut model, "<enter>"), [], "folded again");
}

#[test]
fn copying_gives_clean_text_alone() {
    let mut hostile = fixture::many();
    hostile.snapshot.sessions[0].id = "claude:a\u{1b}]52;c;eA==\u{7}b".to_owned();
    let mut model = showing(hostile, 80, 24);
    assert_eq!(press(&mut model, "y"), [Effect::Copy("claude:ab".to_owned())]);
    let effects = press(&mut model, "ry");
    let command = "cd /home/ada/src/parser && claude --resume 00000001-f36b-4af0-a1a4-2d4d9bf530fb";
    assert_eq!(effects, [Effect::Copy(command.to_owned())]);
}

#[test]
fn the_resume_gate_tells_three_states_apart() {
    for (row, sentence) in [
        (1, "open in pid 4242; a second terminal would interleave"),
        (5, "running; a second terminal would interleave"),
        (7, "not known to be open"),
        (9, "ended; nothing is known to hold it"),
        (10, "open in pid 6161; a second terminal would interleave"),
    ] {
        let mut model = many();
        model.sessions.go_to(row);
        press(&mut model, "r");
        assert!(screen(&model).contains(sentence), "{sentence}\n{}", screen(&model));
    }
}

#[test]
fn a_wide_screen_asks_for_the_selected_session() {
    let mut model = showing(fixture::many(), 120, 40);
    assert_eq!(model.wanted(), Some(1));
    let effects = press(&mut model, "j");
    assert_eq!(effects, [Effect::Query(Query { open: Some(2), ..Query::default() })]);
    let effects = tell(&mut model, Msg::Resize { width: 80, height: 24 });
    assert_eq!(effects, [Effect::Query(Query::default())]);
}

#[test]
fn sub_agents_are_asked_for_when_they_are_unfolded() {
    let mut model = many();
    let effects = press(&mut model, "jjjl");
    let query = Query { children: true, ..Query::default() };
    assert_eq!(effects, [Effect::Query(query)]);
    let mut with_children = fixture::many();
    with_children.snapshot.sessions.extend(fixture::detail().children);
    send(&mut model, with_children);
    let text = screen(&model);
    assert!(text.contains("▾ Rework"), "{text}");
    assert!(text.contains("└ look at the tests"), "{text}");
    assert!(!text.contains("read the history"), "folded one deeper:\n{text}");
    assert!(text.contains("● 4 running"), "sub-agents are not counted:\n{text}");
    press(&mut model, "t");
    assert!(screen(&model).contains("  └ read the history"), "{}", screen(&model));
    assert_eq!(press(&mut model, "t"), [Effect::Query(Query::default())]);
}

#[test]
fn the_mouse_is_off_and_selects_without_opening() {
    let mut model = many();
    assert_eq!(model.mouse, Switch::Off);
    assert_eq!(press(&mut model, "M"), [Effect::Mouse(Switch::On)]);
    let press_at = |row| {
        let kind = lullwatch::ui::key::MouseKind::Press;
        Msg::Mouse(lullwatch::ui::key::Mouse { kind, column: 9, row })
    };
    assert_eq!(tell(&mut model, press_at(6)), []);
    assert_eq!(selected(&model), 2);
    assert_eq!(tell(&mut model, press_at(4)), [], "a heading");
    assert_eq!(selected(&model), 2);
}

#[test]
fn a_human_is_told_once_of_each_event() {
    let options = Options { notify: Switch::On, ..Options::default() };
    let mut model = showing_with(options, fixture::many(), 80, 24);
    let mut next = fixture::many();
    next.snapshot.sessions[4].attention = true;
    next.snapshot.sessions[4].phase = Some(lullwatch::snapshot::Phase::Question);
    let told = |effects: Vec<Effect>| {
        let text = |effect| if let Effect::Notify(text) = effect { Some(text) } else { None };
        effects.into_iter().find_map(text)
    };
    let first = told(send(&mut model, next.clone()));
    assert_eq!(first.as_deref(), Some("lullwatch: question: Fix flaky tests"));
    assert_eq!(told(send(&mut model, next.clone())), None);
    next.snapshot.sessions[3].status = Status::Completed;
    next.snapshot.sessions[5].status = Status::Idle;
    let second = told(send(&mut model, next.clone()));
    assert_eq!(second.as_deref(), Some("lullwatch: completed: Rework the retry logic"));
    press(&mut model, "<space>");
    next.snapshot.sessions[7].attention = true;
    assert!(told(send(&mut model, next.clone())).is_some(), "frozen or not");
    assert_eq!(told(send(&mut model, next)), None);
}

#[test]
fn effects_of_the_shell() {
    let mut model = many();
    assert_eq!(press(&mut model, "q"), [Effect::Quit]);
    assert_eq!(press(&mut model, "/<c-c>"), [Effect::Quit]);
    assert_eq!(press(&mut model, "<c-z><c-l>"), [Effect::Suspend, Effect::Redraw]);
    assert_eq!(press(&mut model, "<esc>R"), [Effect::Rescan]);
    assert!(screen(&model).contains("looking at every file"));
    tell(&mut model, Msg::Now(fixture::NOW_MS + 5_000));
    assert!(!screen(&model).contains("looking at every file"), "notices go by themselves");
}

#[test]
fn keys_that_mean_nothing_or_only_move_lay_nothing_out_anew() {
    let mut model = many();
    press(&mut model, "jjj<enter>");
    assert!(model.detail.lines.len() > 3, "{}", model.detail.lines.len());
    let before = model.detail.lines.as_ptr();
    press(&mut model, "zzZkkj<pgup><pgdn>");
    assert_eq!(model.detail.lines.as_ptr(), before);
    press(&mut model, "l");
    assert_ne!(model.detail.lines.as_ptr(), before, "another tab is laid out");
}

#[test]
fn what_is_hidden_or_not_read_yet_is_said() {
    let mut picture = fixture::empty();
    picture.snapshot.hidden = Hidden { sessions: 3, filters: "--agent dsh".to_owned() };
    let frame = screen(&showing(picture, 80, 24));
    assert!(frame.contains("--agent dsh  3 hidden"), "{frame}");
    assert!(frame.contains("no session is left by the filters"), "{frame}");
    let mut picture = fixture::empty();
    picture.snapshot.mirror.complete = false;
    let frame = screen(&showing(picture, 80, 24));
    assert!(frame.contains("still reading") && !frame.contains("nobody needs you"), "{frame}");
}

#[test]
fn a_bracket_that_an_ended_session_left_open_is_not_counted_as_open() {
    let mut picture = fixture::many();
    let open = |row: &&mut CompactionRow| row.compaction.bracket == "open";
    let count = picture.compactions.iter_mut().filter(open).count();
    let frame = screen(&showing(picture.clone(), 120, 40));
    assert!(frame.contains(&format!("Compactions {count} open")), "{frame}");
    picture.compactions.iter_mut().filter(open).for_each(|row| row.status = Status::Completed);
    let frame = screen(&showing(picture, 120, 40));
    assert!(count > 0 && frame.contains("Compactions 0 open"), "{frame}");
}
