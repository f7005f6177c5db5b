//! Keys of `_meta`: those of the protocol, and those that Trunkline adds under its own prefix.

/// Token that a request supplies to receive `notifications/progress`.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Protocol version of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Capabilities of the client of a modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of the client of a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Name and version of the server, in a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Lowest level of `notifications/message` that a modern request accepts.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `subscriptions/listen` request that a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Extension under which calls may become tasks. It is a key of `capabilities.extensions`.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The task of revision 2025-11-25 that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Prefix of every key that Trunkline itself adds.
pub const PREFIX: &str = "io.trunkline/";
/// In a list: servers whose entries are missing, with the reason.
pub const UNAVAILABLE: &str = "io.trunkline/unavailable";
/// In an error result: whether the same call may succeed later.
pub const RETRY: &str = "io.trunkline/retry";
/// In a result: it comes from an untrusted server (TOOL-10).
pub const UNTRUSTED: &str = "io.trunkline/untrusted";
/// In a block that replaces a resource, such as a link to a file: the other members of that resource.
pub const RESOURCE: &str = "io.trunkline/resource";
/// In the result of a tool that reads a resource or gets a prompt: the other members of the server's
/// result.
pub const RESULT: &str = "io.trunkline/result";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_have_the_prefix() {
        for key in [UNAVAILABLE, RETRY, UNTRUSTED, RESOURCE, RESULT] {
            assert!(key.starts_with(PREFIX), "{key}");
        }
    }
}
