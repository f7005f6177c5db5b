//! Methods of the protocol, and the parameter that names the subject of a request.

/// Notification that a URL elicitation has been completed.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

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
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

const NOTIFICATIONS: &[&str] = &[
    "notifications/cancelled",
    ELICITATION_COMPLETE,
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

/// The method of a request of MCP, if it is written exactly so.
pub fn request_method(method: &str) -> Option<&'static str> {
    REQUESTS.iter().find(|known| **known == method).copied()
}

/// Whether a method belongs to MCP: a request or notification of any version, from either side,
/// including tasks. Case and surrounding white space are ignored, because a server may treat
/// `Tools/Call` as a call.
pub fn is_mcp_method(method: &str) -> bool {
    if request_method(method).is_some() {
        return true;
    }
    let method = method.trim().to_ascii_lowercase();
    let is_it = |known: &&str| known.eq_ignore_ascii_case(&method);
    let is_of_tasks = |method: &str| method.starts_with("tasks/");
    REQUESTS.iter().any(is_it)
        || NOTIFICATIONS.iter().any(is_it)
        || is_of_tasks(&method)
        || method.strip_prefix("notifications/").is_some_and(|it| it == "tasks" || is_of_tasks(it))
}

/// Parameter that names the tool, prompt, resource or task that a request of this method is about.
pub fn subject_key(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_methods_of_the_protocol_and_no_others() {
        let known = ["tools/call", "tasks/get", "notifications/tasks/status"];
        for method in known.into_iter().chain(["Tools/Call", "logging/setlevel", " tools/call\n"]) {
            assert!(is_mcp_method(method), "{method}");
        }
        for method in ["", "x/tools", "tools", "notifications/x", "notifications/tasks_x"] {
            assert!(!is_mcp_method(method), "{method}");
        }
    }
}
