//! What bytes of a terminal mean, and what nobody typed.

use super::*;
use proptest::prelude::*;

fn labels(inputs: &[Input]) -> String {
    let label = |input: &Input| match input {
        Input::Key(key) => key.label(),
        Input::Paste(text) => format!("paste {text:?}"),
        Input::Mouse(mouse) => format!("{:?} {},{}", mouse.kind, mouse.column, mouse.row),
    };
    inputs.iter().map(label).collect::<Vec<_>>().join(" ")
}

/// What comes of pieces that arrive so long after each other that everything waited for is over.
fn late(pieces: &[&[u8]]) -> String {
    let mut decoder = Decoder::default();
    let mut inputs = Vec::new();
    for (at, piece) in (0..).zip(pieces) {
        inputs.extend(decoder.feed(piece, at * 600));
        if decoder.patience().is_some_and(|patience| patience.as_millis() < 600) {
            inputs.extend(decoder.flush());
        }
    }
    labels(&inputs)
}

#[test]
fn keys_of_every_kind() {
    for (bytes, want) in [
        ("jG /", "j G Space /"),
        ("\r\n\t\u{7f}", "Enter Enter Tab Bksp"),
        ("\u{3}\u{1a}\u{c}", "^c ^z ^l"),
        ("\u{1b}[A\u{1b}[B\u{1b}OA", "Up Down Up"),
        ("\u{1b}[5~\u{1b}[6~\u{1b}[1~\u{1b}[4~", "PgUp PgDn Home End"),
        ("\u{1b}[Z\u{1b}[1;5A\u{1b}O5A", "S-Tab Up Up"),
        ("\u{1b}OP\u{1b}[11~\u{1b}[21~\u{1b}[[A", "F1 F1 F10 F1"),
        ("修é", "修 é"),
        ("\u{1b}x\u{1b}\u{1b}[A", "Esc x Esc Up"),
        ("\u{1b}[200~q\u{3}\u{1b}[201~j", "paste \"q\\u{3}\" j"),
        ("\u{1b}[<0;3;4M\u{1b}[<64;1;1M\u{1b}[<0;3;4m", "Press 2,3 WheelUp 0,0"),
        ("\u{1b}[1;1R\u{1b}]11;rgb:0/0/0\u{7}\u{1b}[?1;2cj", "j"),
        ("\u{1b}[27u\u{1b}[99;5u\u{1b}[113;1:1u", "Esc ^c q"),
        ("\u{1b}[1\u{3}", "^c"),
        ("\u{1b}]11;\u{3}j", "^c j"),
    ] {
        assert_eq!(labels(&Decoder::default().feed(bytes.as_bytes(), 0)), want, "{bytes:?}");
    }
}

#[test]
fn what_nobody_typed_is_no_key() {
    for bytes in [
        &b"\x1b[M q("[..],   // a click in column 81, the old way
        b"\x1b[M \xc2\x9bq", // the same of a wide terminal that writes UTF-8
        b"\x1b[M q\xc2\x9b",
        b"\x1b[32;81;8M",        // the way of urxvt
        b"\x1b[tqq\x1b[Tqqqqqq", // highlight tracking
        b"\x1b[<0;81;8m",
        b"\x1b[113;1:3u\x1b[1;1:3A", // a key that is let go
        b"\x1b[113;3u\x1b[113;9u",   // one held with Alt, or with Super
        b"\x1b_Gi=31;OKq\x1b\\",     // kitty's answer about pictures
        b"\x1b^qq\x1b\\\x1bXqq\x1b\\",
        b"\x1bP>|XTerm(388)qqq\x1b\\",
        b"\x9b?61;22c\x9d11;qq\x9c\xc2\x9bA\x8fA", // controls of eight bits; arrows are keys
        b"\x1b[I\x1b[O\x1b[24;80R\x1b[?2026;2$y",
    ] {
        let inputs = Decoder::default().feed(bytes, 0);
        let keys = labels(&inputs);
        let arrows = if bytes.first() == Some(&0x9b) { "Up Up" } else { "" };
        assert_eq!(keys, arrows, "{}", bytes.escape_ascii());
    }
}

#[test]
fn the_rest_of_a_sequence_belongs_to_it_however_late_it_comes() {
    for (pieces, want) in [
        (&[&b"\x1b]11;rg"[..], b"b:fafa/ffff", b"/aaaa\x1b", b"\\", b"j"][..], "j"),
        (&[b"\x1b]11;rg", b"q\x07j"], "j"),
        (&[b"\x1b[?6", b"1;4;6;22c", b"j"], "j"),
        (&[b"\x1b[", b"A"], "Up"),
        (&[b"\x1bO", b"A"], "Up"),
        (&[b"\x1bP", b">|XTerm(388)q", b"\x1b\\j"], "j"),
        (&[b"\x1b[M", b" ", b"q", b"(", b"j"], "j"),
        (&[b"\x1b[M \xc2", b"\x9b", b"q", b"j"], "j"),
        (&[b"\x1b[200~a", b"y", b"q\x1b[20", b"1~j"], "paste \"ayq\" j"),
        (&[b"\xe4\xbf", b"\xae"], "修"),
        // Of a lone escape nothing else is known; but what comes in one piece is no typing.
        (&[b"\x1b", b"[B", b"j"], "Esc Down j"),
        (&[b"\x1b", b"[?61;22c", b"j"], "Esc j"),
        (&[b"\x1b", b"[", b"[", b"]"], "Esc [ [ ]"),
        (&[b"\x1b", b"j"], "Esc j"),
        // A string without an end: Esc and ^C lead out of it.
        (&[b"\x1b]", b"jjj", b"\x1b", b"j"], "j"),
        (&[b"\x1b]", b"jjj", b"\x03"], "^c"),
    ] {
        assert_eq!(late(pieces), want, "{pieces:?}");
    }
    let mut decoder = Decoder::default();
    let long = [&b"\x1b]52;c;"[..], &[b'q'; 5_000], b"\x07\x1b[", &[b'1'; 5_000], b"q"].concat();
    assert_eq!(decoder.feed(&long, 0), [], "too long to mean something, and still one sequence");
    assert_eq!(labels(&decoder.feed(b"j", 0)), "j");
}

#[test]
fn an_escape_alone_is_a_key_only_when_nothing_follows() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"\x1b", 0), []);
    assert!(decoder.patience().is_some());
    assert_eq!(labels(&decoder.feed(b"[A", 10)), "Up");
    assert_eq!(decoder.patience(), None);
    decoder.feed(b"\x1b", 20);
    assert_eq!(labels(&decoder.flush()), "Esc");
    assert_eq!(labels(&decoder.feed(b"\x1b\x1b[B", 30)), "Esc Down");
}

#[test]
fn a_paste_without_an_end_is_over_when_nothing_more_comes() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"\x1b[200~abc", 0), []);
    assert!(decoder.patience().is_some_and(|patience| patience <= Duration::from_secs(3)));
    assert_eq!(labels(&decoder.flush()), "paste \"abc\"");
    assert_eq!(labels(&decoder.feed(b"q", 3_000)), "q");
}

#[test]
fn the_interrupt_key_works_through_a_paste_that_never_ends() {
    // Typed: it comes by itself, after a moment.
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"\x1b[200~abc", 0), []);
    assert_eq!(labels(&decoder.feed(b"\x03", 500)), "^c");
    // Pasted: text like any other.
    let mut decoder = Decoder::default();
    decoder.feed(b"\x1b[200~abc", 0);
    assert_eq!(decoder.feed(b"\x03", 10), []);
    assert_eq!(labels(&decoder.feed(b"\x1b[201~", 20)), "paste \"abc\\u{3}\"");
    // In a stream that leaves no moment: once it is too long or too much for a paste.
    let mut decoder = Decoder::default();
    decoder.feed(b"\x1b[200~", 0);
    for at_ms in 0..6_000 {
        assert_eq!(decoder.feed(b"yes ", at_ms), []);
    }
    assert_eq!(labels(&decoder.feed(b"yes \x03 yes", 6_000)), "^c Space y e s");
    let mut decoder = Decoder::default();
    decoder.feed(b"\x1b[200~", 0);
    for _ in 0..2_000 {
        assert_eq!(decoder.feed(&[b'y'; 1_000], 1), []);
    }
    assert_eq!(labels(&decoder.feed(b"yes \x03", 1)), "^c");
}

#[test]
fn a_long_paste_is_kept_up_to_its_bound() {
    let mut decoder = Decoder::default();
    let long = [&b"\x1b[200~"[..], &vec![b'y'; 100_000], b"\x1b[201~j"].concat();
    let inputs = decoder.feed(&long, 0);
    let [Input::Paste(text), Input::Key(key)] = inputs.as_slice() else { panic!("{inputs:?}") };
    assert_eq!((text.len(), key.label().as_str()), (PASTE_BYTES_MAX, "j"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_pieces_mean_the_same(
        bytes in prop::collection::vec(prop_oneof![
            Just(0x1b_u8), Just(b'['), Just(b'O'), Just(b'~'), Just(b'2'), Just(b'0'), Just(b';'),
            Just(b'M'), Just(b']'), Just(0xc2), any::<u8>(),
        ], 0..80),
        at in 0_usize..80,
    ) {
        let whole = Decoder::default().feed(&bytes, 0);
        let mut decoder = Decoder::default();
        let (front, back) = bytes.split_at(at.min(bytes.len()));
        let mut pieces = decoder.feed(front, 0);
        pieces.extend(decoder.feed(back, 1));
        prop_assert_eq!(pieces, whole);
    }
}
