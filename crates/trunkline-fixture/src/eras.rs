//! Which generations of the protocol the server speaks, and what it says to the other one.

use std::borrow::Cow;

use clap::ValueEnum;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ProtocolVersion,
    ServerJsonRpcMessage,
};

/// The generations that a run of the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServedEras {
    /// Whatever the client begins with.
    Both,
    /// Only `initialize`; `server/discover` is an unknown method.
    Legacy,
    /// Only `server/discover`; `initialize` names an unsupported version.
    Modern,
}

impl ServedEras {
    /// The versions it speaks, oldest first.
    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Self::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }

    /// The version it names when a client asks for one that it does not speak.
    pub(crate) fn newest(self) -> ProtocolVersion {
        match self {
            Self::Legacy => ProtocolVersion::V_2025_11_25,
            Self::Both | Self::Modern => ProtocolVersion::V_2026_07_28,
        }
    }

    /// The answer to a message of a generation that it does not speak.
    ///
    /// The library would end the connection instead (`initialize` to a modern server), or show that
    /// it knows the method after all (`server/discover` to a legacy one).
    pub(crate) fn refusal(self, message: &ClientJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let error = match (self, &request.request) {
            (Self::Legacy, ClientRequest::DiscoverRequest(_)) => {
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)
            }
            (Self::Modern, ClientRequest::InitializeRequest(initialize)) => {
                let requested = initialize.params.protocol_version.clone();
                ErrorData::unsupported_protocol_version(requested, &self.versions())
            }
            _ => return None,
        };
        Some(ServerJsonRpcMessage::error(error, Some(request.id.clone())))
    }
}
