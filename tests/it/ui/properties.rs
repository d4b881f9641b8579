//! What holds for any size, any keys, any text.

use std::num::NonZeroU16;
use std::sync::Arc;

use lullwatch::app::painter::Painter;
use lullwatch::text;
use lullwatch::ui::msg::Msg;
use lullwatch::ui::{Options, layout, view};
use proptest::prelude::*;

use super::{fixture, press, screen, showing, tell};

const KEYS: [&str; 44] = [
    "j", "k", "g", "G", "<pgdn>", "<pgup>", "<enter>", "<esc>", "<tab>", "<s-tab>", "1", "2", "3",
    "4", "/", "f", "s", "h", "l", "t", "F", "<space>", "a", "y", "n", "x", "X", "c", "r", "w", "?",
    "M", "R", "<bksp>", "<c-u>", "<c-l>", "<up>", "<down>", "<left>", "<right>", "[", "]", "修",
    "<home>",
];

fn script() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&KEYS[..]), 0..30).prop_map(|keys| keys.concat())
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_keys_at_no_size_panic_and_the_selection_is_on_the_screen(
        script in script(),
        width in prop_oneof![0_u16..130, 0_u16..500],
        height in prop_oneof![0_u16..50, 0_u16..200],
        later in (0_u16..200, 0_u16..80),
    ) {
        let mut model = showing(fixture::many(), width, height);
        press(&mut model, &script);
        view(&model);
        tell(&mut model, Msg::Resize { width: later.0, height: later.1 });
        tell(&mut model, Msg::Picture(Arc::new(fixture::empty())));
        view(&model);
        tell(&mut model, Msg::Picture(fixture::fleet(60)));
        let frame = view(&model);
        prop_assert_eq!((frame.area.width, frame.area.height), (model.width, model.height));
        let areas = model.areas();
        if let Some(area) = areas.list.filter(|_| !layout::is_too_small(&model)) {
            let list = model.list(model.pane);
            let height = usize::from(layout::rows(area).height);
            prop_assert!(list.offset <= list.at && list.at < list.offset + height);
        }
    }

    #[test]
    fn hostile_text_leaves_no_control_in_any_frame(raw in any::<String>(), script in script()) {
        let mut picture = fixture::many();
        for session in &mut picture.snapshot.sessions {
            session.title = Some(raw.clone());
            session.cwd = Some(raw.clone());
            session.branch = Some(raw.clone());
            session.last_text = Some(raw.clone());
            session.reason.summary.clone_from(&raw);
            session.native_id.clone_from(&raw);
        }
        picture.snapshot.host.clone_from(&raw);
        picture.snapshot.mirror.warnings = vec![raw.clone()];
        picture.audit[0].why.clone_from(&raw);
        picture.ledger[0].last_error = Some(raw);
        let mut model = showing(picture, 120, 40);
        press(&mut model, &script);
        let frame = view(&model);
        prop_assert!(frame.content.iter().all(|cell| text::is_clean(cell.symbol())));
    }

    #[test]
    fn every_row_is_exactly_as_wide_as_the_screen(width in 1_u16..=200) {
        for keys in ["", "2", "3", "4", "j<enter>"] {
            let mut model = showing(fixture::many(), width, 24);
            press(&mut model, keys);
            let frame = view(&model);
            for y in 0..frame.area.height {
                let mut cells = 0;
                let mut x = 0;
                while x < frame.area.width {
                    let wide = text::width(frame[(x, y)].symbol()).max(1);
                    cells += wide;
                    x += u16::try_from(wide).unwrap();
                }
                prop_assert_eq!(cells, usize::from(width), "row {} of {:?}", y, keys);
            }
        }
    }
}

#[test]
fn a_title_is_cut_by_cells_as_case_22_says() {
    for (cells, want) in [(24, "修正支付服务的重试逻辑… "), (12, "修正支付服… "), (3, "修…")]
    {
        let piece = lullwatch::ui::piece::plain("修正支付服务的重试逻辑🙏并补充测试");
        assert_eq!(piece.fit(cells).text(), want);
    }
}

#[test]
fn at_rest_an_age_is_all_that_changes_and_most_of_the_time_nothing_does() {
    let mut model = showing(fixture::many(), 120, 40);
    let mut painter = Painter::default();
    painter.paint(view(&model));
    let mut written = Vec::new();
    for tick in 1..=12 {
        tell(&mut model, Msg::Now(fixture::NOW_MS + tick * 5_000));
        let bytes = painter.paint(view(&model));
        if !bytes.is_empty() {
            written.push(tick);
            assert!(bytes.len() < 700, "{}", bytes.escape_debug());
        }
    }
    assert!(written.len() <= 9, "{written:?}");
    // The same picture again, as after an empty pass: not a byte.
    let same = model.picture.clone().unwrap();
    tell(&mut model, Msg::Picture(same));
    assert_eq!(painter.paint(view(&model)), "");
}

#[test]
fn a_full_repaint_is_at_most_16_kilobytes_and_reads_back_as_drawn() {
    let mut model = showing(fixture::many(), 120, 40);
    press(&mut model, "jjj");
    for keys in ["", "2", "3", "4", "?"] {
        press(&mut model, keys);
        let bytes = Painter::default().paint(view(&model));
        assert!(bytes.len() <= 16 * 1024, "{} bytes", bytes.len());
        let mut emulator =
            vt100::Parser::new(NonZeroU16::new(40).unwrap(), NonZeroU16::new(120).unwrap(), 0);
        emulator.process(bytes.as_bytes());
        let shown: Vec<String> = emulator.screen().rows(0, 120).collect();
        let drawn = screen(&model);
        for (shown, drawn) in shown.iter().zip(drawn.lines()) {
            assert_eq!(shown.trim_end(), drawn);
        }
    }
}

#[test]
fn a_frame_of_two_thousand_sessions_draws_only_what_is_seen() {
    let mut model = showing_fleet(200, 60);
    press(&mut model, "G");
    let text = screen(&model);
    assert!(text.contains("Task"), "{text}");
    assert_eq!(model.sessions.items().count(), 2_000);
}

fn showing_fleet(width: u16, height: u16) -> lullwatch::ui::Model {
    let mut model = lullwatch::ui::Model::new(Options::default(), width, height, fixture::NOW_MS);
    tell(&mut model, Msg::Picture(fixture::fleet(2_000)));
    model
}

#[test]
fn a_size_beyond_any_screen_is_refused_with_a_line() {
    let symbol = ratatui::buffer::Cell::symbol;
    for (width, height) in [(65_535, 65_535), (1_001, 500), (1_000, 501), (10_000, 10_000)] {
        let mut model = showing(fixture::many(), width, height);
        press(&mut model, "jj<enter>G?<esc>");
        let frame = view(&model);
        assert!(frame.area.area() <= 100, "{:?}", frame.area);
        let line: String = frame.content().iter().map(symbol).collect();
        let want = format!("lullwatch draws up to 1000x500, is {width}x{height}");
        assert_eq!(line.trim_end(), want);
    }
    let model = showing(fixture::many(), 1_000, 500);
    assert_eq!(view(&model).area.area(), 500_000);
}
