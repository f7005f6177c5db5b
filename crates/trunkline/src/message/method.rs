//! The methods that the protocol knows.

const REQUESTS: &[&str] = &[
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

const NOTIFICATIONS: &[&str] = &[
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
];

/// Whether the protocol knows a method, in any of its revisions and from either side: of a request
/// or of a notification, tasks included. What others mean is between a client and its server. Case
/// makes no difference, nor does white space around it: a server may take `Tools/Call` for a call.
pub fn is_of_protocol(method: &str) -> bool {
    let method = method.trim().to_ascii_lowercase();
    let is_it = |known: &&str| known.eq_ignore_ascii_case(&method);
    let is_of_tasks = |method: &str| method.starts_with("tasks/");
    REQUESTS.iter().any(is_it)
        || NOTIFICATIONS.iter().any(is_it)
        || is_of_tasks(&method)
        || method.strip_prefix("notifications/").is_some_and(|it| it == "tasks" || is_of_tasks(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_knows_its_own_methods_and_no_others() {
        let known = ["tools/call", "tasks/get", "notifications/tasks/status"];
        for method in known.into_iter().chain(["Tools/Call", "logging/setlevel", " tools/call\n"]) {
            assert!(is_of_protocol(method), "{method}");
        }
        for method in ["", "x/tools", "tools", "notifications/x", "notifications/tasks_x"] {
            assert!(!is_of_protocol(method), "{method}");
        }
    }
}
