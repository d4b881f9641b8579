//! The whole grid: every status, actor and reason against every edge.

use std::fmt::Write as _;

use super::*;

const STRANGER: &str = "someone-else";

fn froms() -> Vec<Option<Status>> {
    std::iter::once(None).chain(Status::ALL.into_iter().map(Some)).collect()
}

/// Every actor there is, each with the agent whose rows it is offered, and one that nobody knows.
fn actors() -> Vec<(Actor, &'static str)> {
    let mut list: Vec<(Actor, &'static str)> = RECONCILERS
        .iter()
        .map(|(id, agent)| (Actor::new(ActorType::System, *id), *agent))
        .collect();
    list.push((Actor::new(ActorType::System, MIGRATION), "claude"));
    list.push((Actor::new(ActorType::Executor, RUN), "claude"));
    list.push((Actor::new(ActorType::System, SWEEP), "claude"));
    list.push((Actor::new(ActorType::System, STRANGER), "claude"));
    list.push((Actor::new(ActorType::Operator, STRANGER), "claude"));
    list
}

/// What must be offered for that change to be let through: nothing, evidence, an override.
fn cell(asked: &Asked<'_>) -> char {
    let evidence = ["seen".to_owned()];
    let with = |evidence, override_by| judge(&Asked { evidence, override_by, ..*asked }).is_ok();
    if with(&[], None) {
        '+'
    } else if with(&evidence, None) {
        'e'
    } else if with(&[], Some(asked.actor.id.as_str())) {
        'o'
    } else if with(&evidence, Some(asked.actor.id.as_str())) {
        'x'
    } else {
        '.'
    }
}

#[test]
fn the_whole_grid_of_edges_actors_and_reasons() {
    let word = |status: Option<Status>| status.map_or("none", Status::word);
    let mut grid = String::from("+ allowed, e with evidence, o by override only, . rejected\n\n");
    for (place, code) in reason::ALL.iter().enumerate() {
        writeln!(grid, "{:>2} {code}", place + 1).unwrap();
    }
    let (mut allowed, mut rejected) = (0, 0);
    for entity in [EntityType::Session, EntityType::Run] {
        for from in froms() {
            for to in Status::ALL {
                for (actor, agent) in actors() {
                    let agent = (entity == EntityType::Session).then_some(agent);
                    let row: String = reason::ALL
                        .iter()
                        .map(|reason| {
                            let (evidence, override_by) = (&[][..], None);
                            let actor = &actor;
                            cell(&Asked {
                                entity,
                                from,
                                to,
                                actor,
                                agent,
                                reason,
                                evidence,
                                override_by,
                            })
                        })
                        .collect();
                    let open = row.chars().filter(|cell| *cell != '.').count();
                    allowed += open;
                    rejected += row.len() - open;
                    if open > 0 {
                        let edge = format!("{} {} → {}", entity.word(), word(from), to.word());
                        write!(grid, "\n{edge:<36} {:<24} {row}", actor.id).unwrap();
                    }
                }
            }
        }
    }
    write!(grid, "\n\n{allowed} combinations allowed, {rejected} rejected").unwrap();
    insta::assert_snapshot!("grid", grid);
}

#[test]
fn the_edges_as_data() {
    let mut table = String::new();
    for edge in EDGES {
        writeln!(
            table,
            "{} {} -> {}: {:?}{}{}, {}",
            edge.entity.word(),
            edge.from.map_or("none", Status::word),
            edge.to.word(),
            edge.kind,
            if edge.extension { ", extension" } else { "" },
            if edge.needs_evidence { ", with evidence" } else { "" },
            edge.actors.join(" "),
        )
        .unwrap();
    }
    insta::assert_snapshot!("edges", table);
}

fn asked<'a>(actor: &'a Actor, from: Status, to: Status, reason: &'a str) -> Asked<'a> {
    Asked {
        entity: EntityType::Session,
        from: Some(from),
        to,
        actor,
        agent: Some("claude"),
        reason,
        evidence: &[],
        override_by: None,
    }
}

#[test]
fn each_refusal_has_its_own_cause() {
    let claude = reconciler("claude").unwrap();
    let codex = reconciler("codex").unwrap();
    let stranger = Actor::new(ActorType::System, STRANGER);
    let operator = Actor::new(ActorType::Operator, claude.id.clone());
    let lull = |actor| asked(actor, Status::Running, Status::Idle, reason::IDLE_SILENCE);
    let exit = asked(&claude, Status::Running, Status::Completed, reason::COMPLETED_EXITED);
    let back = asked(&claude, Status::Completed, Status::Running, reason::REACTIVATED_ACTIVITY);
    let silence = Asked { reason: reason::COMPLETED_SILENCE, ..lull(&claude) };
    let failed = Asked { to: Status::Failed, ..lull(&claude) };
    let cases = [
        (failed, Refusal::NoEdge),
        (lull(&operator), Refusal::ActorType),
        (lull(&stranger), Refusal::Actor),
        (lull(&codex), Refusal::ForeignAgent),
        (silence, Refusal::Reason),
        (exit, Refusal::EvidenceMissing),
        (back, Refusal::OverrideMissing),
        (Asked { override_by: Some(STRANGER), ..back }, Refusal::OverrideActor),
        (Asked { override_by: Some(codex.id.as_str()), ..back }, Refusal::OverrideActor),
    ];
    for (asked, refusal) in cases {
        assert_eq!(judge(&asked), Err(refusal), "{asked:?}");
        assert!(!refusal.phrase().is_empty());
    }
    assert!(judge(&lull(&claude)).is_ok());
    let over = Asked { override_by: Some(claude.id.as_str()), ..back };
    assert_eq!(judge(&over).unwrap().kind, EdgeKind::OverrideOnly);
}

#[test]
fn an_override_offered_where_none_is_needed_makes_no_override() {
    let claude = reconciler("claude").unwrap();
    let wake = asked(&claude, Status::Idle, Status::Running, reason::RUNNING_ACTIVITY);
    let offered = Asked { override_by: Some(claude.id.as_str()), ..wake };
    assert_eq!(judge(&offered).unwrap().kind, EdgeKind::Ordinary);
}

#[test]
fn only_the_reconcilers_and_the_migration_write_idle_and_never_on_a_run() {
    for edge in EDGES.iter().filter(|edge| edge.to == Status::Idle) {
        assert_eq!(edge.entity, EntityType::Session);
        assert!(edge.actors == MIRRORS || edge.actors == [MIGRATION], "{edge:?}");
    }
}

#[test]
fn no_session_completes_by_silence_from_running() {
    let by_silence = EDGES.iter().filter(|edge| edge.reasons.contains(&reason::COMPLETED_SILENCE));
    let froms: Vec<Option<Status>> = by_silence.map(|edge| edge.from).collect();
    assert_eq!(froms, [Some(Status::Idle)]);
}

#[test]
fn every_way_out_of_a_terminal_leaves_an_audit_event() {
    for edge in EDGES.iter().filter(|edge| edge.from.is_some_and(Status::is_terminal)) {
        let audited = match edge.kind {
            EdgeKind::OverrideOnly | EdgeKind::Migration => true,
            EdgeKind::Admission | EdgeKind::Ordinary => false,
        };
        assert!(audited, "{edge:?}");
    }
}
