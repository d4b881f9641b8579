//! Claude's registry entries: what one claims, and what proves or disproves it.

use super::*;
use crate::liveness::testing::{FIRST_NS, Fake};

fn entry(text: &str) -> Entry {
    parse(text.as_bytes(), 42).unwrap()
}

fn judged(fake: &Fake, text: &str) -> (Claim, String) {
    let entry = Entry { owner: Some(crate::liveness::testing::UID), ..entry(text) };
    let judged = judge(&entry, &fake.proc());
    (judged.claim, judged.why)
}

const OURS: &str = r#"{"pid":42,"procStart":"12345","sessionId":"s"}"#;

#[test]
fn fields_of_a_wrong_type_are_absent_and_the_rest_stands() {
    let read = entry(
        r#"{"pid":"42","procStart":12345,"sessionId":["s"],"cwd":null,"status":"dreaming",
            "statusUpdatedAt":"17","updatedAt":1.5e3,"waitingFor":{},"entrypoint":"sdk-ts"}"#,
    );
    let wanted = Entry {
        pid: 42,
        proc_start: Some("12345".to_owned()),
        status: Some(Says::Other),
        status_updated_ms: Some(17),
        updated_ms: Some(1500),
        entrypoint: Some("sdk-ts".to_owned()),
        ..Entry::default()
    };
    assert_eq!(read, wanted);
    assert!(read.is_sdk());
}

#[test]
fn half_written_foreign_or_endless_entries_are_unreadable() {
    for text in ["", "{\"pid\":42,\"sess", "[42]", "42", r#"{"pid":43}"#, r#"{"pid":null}"#] {
        assert!(parse(text.as_bytes(), 42).is_err(), "{text}");
    }
    let long = format!("{OURS}{}", " ".repeat(300 << 10));
    assert!(parse(long.as_bytes(), 42).is_err());
}

#[test]
fn only_files_named_by_a_pid_are_opened() {
    let fake = Fake::new();
    let folder = fake.beside("home/sessions");
    fs::write(folder.join("42.json"), OURS).unwrap();
    fs::write(folder.join("43.json"), OURS).unwrap();
    for name in ["pid-777.json", "42.waiting.json", "42.key", ".json", "4 2.json", "+42.json"] {
        fs::write(folder.join(name), OURS).unwrap();
    }
    fs::create_dir(folder.join("44.json")).unwrap();
    std::os::unix::fs::symlink(folder.join("42.json"), folder.join("45.json")).unwrap();
    let registry = read(&[folder.clone(), fake.beside("x").join("none")], 100);
    let pids = |all: &[Unreadable]| {
        let mut pids: Vec<u32> = all.iter().map(|one| one.pid).collect();
        pids.sort_unstable();
        pids
    };
    // The link reaches a file that was read already, or is itself read under a wrong name.
    assert!(registry.entries.len() <= 1);
    assert!(pids(&registry.unreadable).starts_with(&[43, 44]));
    assert_eq!(
        registry.folders.iter().map(|(_, state)| *state).collect::<Vec<_>>(),
        [FolderState::Present, FolderState::Missing]
    );
    assert!(!registry.is_whole());
    assert!(read(&[folder], 1).truncated);
}

#[test]
fn a_pipe_in_the_registry_keeps_nobody() {
    let fake = Fake::new();
    let folder = fake.beside("sessions");
    let made = std::process::Command::new("mkfifo").arg(folder.join("42.json")).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(read(&[folder], 9).unreadable.len(), 1);
    }
}

#[test]
fn the_registry_lies_beside_the_transcripts() {
    let fake = Fake::new();
    let home = fake.beside("claude");
    assert_eq!(folder_of(&home), home.join("sessions"));
    assert_eq!(folder_of(&home.join("projects")), home.join("sessions"));
}

#[test]
fn an_entry_is_proven_by_pid_and_start_whatever_its_age() {
    let fake = Fake::new();
    fake.process(42, 12_345);
    assert!(matches!(judged(&fake, OURS).0, Claim::Proven(_)));
    let old = r#"{"pid":42,"procStart":"12345","sessionId":"s","updatedAt":1,"statusUpdatedAt":1}"#;
    assert!(matches!(judged(&fake, old).0, Claim::Proven(_)));
}

#[test]
fn a_dead_pid_a_reused_one_and_an_ended_process_are_disproved() {
    let fake = Fake::new();
    let gone = judged(&fake, OURS);
    assert_eq!(gone, (Claim::Disproved, "entry of pid 42: there is no such process".to_owned()));
    fake.process(42, 12_346);
    assert_eq!(judged(&fake, OURS).0, Claim::Disproved);
    fake.process_as(42, 12_345, "Z", 1);
    assert_eq!(judged(&fake, OURS).0, Claim::Disproved);
}

#[test]
fn without_a_start_time_an_entry_proves_nothing() {
    let fake = Fake::new();
    fake.process(42, 12_345);
    for text in [
        r#"{"pid":42,"sessionId":"s"}"#,
        r#"{"pid":42,"sessionId":"s","procStart":"Mon Nov 30 09:00:00 2026"}"#,
    ] {
        assert_eq!(judged(&fake, text).0, Claim::Unknown);
    }
}

#[test]
fn an_entry_of_another_pid_domain_is_unknown() {
    let fake = Fake::new();
    fake.process(42, 12_345);
    let with = |domain: &str| {
        let text = OURS.replace('}', &format!(r#","pidDomain":"{domain}"}}"#));
        judged(&fake, &text).0
    };
    for domain in ["darwin", "win32:host", "linux:m:pid:[4026532000]", "linux::x", "linux"] {
        assert_eq!(with(domain), Claim::Unknown, "{domain}");
    }
    for domain in [format!("linux:m:pid:[{FIRST_NS}]"), format!("linux::pid:[{FIRST_NS}]")] {
        assert!(matches!(with(&domain), Claim::Proven(_)), "{domain}");
    }
}

#[test]
fn an_entry_of_another_machine_is_not_disproved_by_our_processes() {
    let fake = Fake::new();
    let scope = super::super::scope::Scope {
        machine: Some("ours".to_owned()),
        ..fake.proc().scope().clone()
    };
    let proc = Proc::at(&fake.path(), 100, scope);
    let text = OURS.replace('}', &format!(r#","pidDomain":"linux:theirs:pid:[{FIRST_NS}]"}}"#));
    let theirs = Entry { owner: Some(proc.scope().uid), ..entry(&text) };
    assert_eq!(judge(&theirs, &proc).claim, Claim::Unknown);
    let text = text.replace("theirs", "ours");
    let ours = Entry { owner: Some(proc.scope().uid), ..entry(&text) };
    assert_eq!(judge(&ours, &proc).claim, Claim::Disproved);
}

#[test]
fn without_proc_an_entry_is_unknown() {
    let empty = tempfile::tempdir().unwrap();
    let proc = Proc::at(empty.path(), 100, super::super::scope::Scope::default());
    assert_eq!(judge(&entry(OURS), &proc).claim, Claim::Unknown);
}

#[test]
fn a_claimed_spare_is_its_session_whatever_its_arguments_say() {
    let fake = Fake::new();
    fake.process(42, 12_345);
    for argv in [
        &["claude", "bg-spare", "--bg-spare", "/run/x.sock"][..],
        &["claude", "--bg-pty-host=7"],
        &["node", "/x/cli.js", "daemon", "run"],
        &["claude", "-p", "what does --bg-spare do?"],
    ] {
        fake.argv(42, argv);
        assert!(matches!(judged(&fake, OURS).0, Claim::Proven(_)), "{argv:?}");
    }
}
