//! Sets of scopes.

/// The scopes of both, in order.
pub(super) fn union(first: &[Box<str>], second: &[Box<str>]) -> Vec<Box<str>> {
    let mut all = first.to_vec();
    for scope in second {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_joined_once_each() {
        let set = |text: &str| text.split(' ').map(Into::into).collect::<Vec<Box<str>>>();
        assert_eq!(union(&set("a b"), &set("b c")), set("a b c"));
    }
}
