//! Where an observation holds: host, boot, pid namespace, user.
//!
//! A pid means something only inside one pid namespace of one boot of one host. So every record
//! carries the scope in which it was made, and what a later look may conclude from it depends on
//! how the two scopes relate. A scope with a part unknown is never the same as another.

use serde::{Deserialize, Serialize};

/// The scope of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// Host name.
    pub host: String,
    /// `/etc/machine-id`, which tells two hosts of one name apart.
    pub machine: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// Inode of the pid namespace, from the link `/proc/self/ns/pid`.
    pub pid_ns: Option<u64>,
    /// User id of the observer.
    pub uid: u32,
}

/// How the scope of an earlier observation relates to ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// A pid of then is the same pid now.
    Same,
    /// The same host, started again since: whatever ran then is gone.
    OtherBoot,
    /// Another host, container or user, or one of the two is unknown: nothing can be concluded.
    Other,
}

impl Scope {
    /// How `then` relates to this scope.
    pub fn relation(&self, then: &Self) -> Relation {
        let (Some(boot), Some(boot_then)) = (&self.boot_id, &then.boot_id) else {
            return Relation::Other;
        };
        let other_machine = match (&self.machine, &then.machine) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (None, _) | (_, None) => false,
        };
        if self.host.is_empty() || self.host != then.host || other_machine {
            return Relation::Other;
        }
        if boot != boot_then {
            return Relation::OtherBoot;
        }
        let same_namespace = self.pid_ns.is_some() && self.pid_ns == then.pid_ns;
        // Root sees what any user saw.
        if same_namespace && (self.uid == then.uid || self.uid == 0) {
            return Relation::Same;
        }
        Relation::Other
    }
}

/// The inode in the text of a namespace link, `pid:[4026531836]`.
pub fn namespace_inode(link: &str) -> Option<u64> {
    link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            host: "h".to_owned(),
            machine: Some("m".to_owned()),
            boot_id: Some("b1".to_owned()),
            pid_ns: Some(4_026_531_836),
            uid: 1000,
        }
    }

    fn relation(change: impl FnOnce(&mut Scope)) -> Relation {
        let mut then = scope();
        change(&mut then);
        scope().relation(&then)
    }

    #[test]
    fn another_boot_of_the_same_host_proves_that_all_is_gone() {
        assert_eq!(relation(|_| {}), Relation::Same);
        assert_eq!(relation(|then| then.boot_id = Some("b0".into())), Relation::OtherBoot);
    }

    #[test]
    fn another_host_container_or_user_proves_nothing() {
        let changes: [fn(&mut Scope); 7] = [
            |then| then.host = "other".into(),
            |then| then.machine = Some("other".into()),
            |then| (then.host, then.boot_id) = ("other".into(), Some("b0".into())),
            |then| then.boot_id = None,
            |then| then.pid_ns = Some(4_026_532_000),
            |then| then.pid_ns = None,
            |then| then.uid = 1001,
        ];
        for change in changes {
            assert_eq!(relation(change), Relation::Other);
        }
        assert_eq!(Scope::default().relation(&Scope::default()), Relation::Other);
    }

    #[test]
    fn root_sees_what_a_user_saw_but_not_the_reverse() {
        let root = Scope { uid: 0, ..scope() };
        assert_eq!(root.relation(&scope()), Relation::Same);
        assert_eq!(scope().relation(&root), Relation::Other);
    }

    #[test]
    fn a_namespace_link_has_an_inode() {
        assert_eq!(namespace_inode("pid:[4026531836]"), Some(4_026_531_836));
        assert_eq!(namespace_inode("mnt:[4026531836]"), None);
        assert_eq!(namespace_inode("pid:[]"), None);
    }
}
