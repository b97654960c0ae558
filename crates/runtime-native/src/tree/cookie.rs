//! The mark that every process of an execution carries in its environment.

use prx_runtime_core::{EXECUTION_ID_VARIABLE, ExecutionId, Owner};

/// How many enclosing executions a cookie still names.
const DEPTH: usize = 8;

/// `ID.OWNER`, and after commas those of the executions that the host itself runs in, so that the
/// outermost one finds what the inner ones started.
#[derive(Debug, Clone)]
pub(crate) struct Cookie {
    own: String,
    value: String,
}

impl Cookie {
    pub(crate) fn new(id: ExecutionId, owner: Owner) -> Self {
        let own = format!("{id}.{owner}");
        let mut value = own.clone();
        if let Ok(enclosing) = std::env::var(EXECUTION_ID_VARIABLE) {
            for cookie in enclosing.split(',').take(DEPTH) {
                value.push(',');
                value.push_str(cookie);
            }
        }
        Self { own, value }
    }

    /// The value of the variable.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// Whether `value`, as a process carries it, names this execution.
    pub(crate) fn is_in(&self, value: &str) -> bool {
        value.split(',').any(|cookie| cookie == self.own)
    }
}

/// The owners of all the executions that `value` names.
pub(crate) fn owners(value: &str) -> impl Iterator<Item = Owner> {
    value
        .split(',')
        .filter_map(|cookie| cookie.split_once('.')?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_enclosing_ones() {
        let owner = Owner::current();
        let cookie = Cookie::new(ExecutionId::random().unwrap(), owner);
        let other = Cookie::new(ExecutionId::random().unwrap(), owner);
        let nested = format!("{},{}", other.own, cookie.own);
        assert!(cookie.is_in(&nested) && other.is_in(&nested));
        assert!(!cookie.is_in(other.value()));
        assert!(owners(&nested).eq([owner, owner]));
        assert_eq!(owners("nonsense,1.2,").count(), 0);
    }
}
