//! The protocol eras that the server supports, and its responses in an unsupported one.

use std::borrow::Cow;

use clap::ValueEnum;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ProtocolVersion,
    ServerJsonRpcMessage,
};

/// The eras that a run of the server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServedEras {
    /// The era of the client's first request.
    Both,
    /// Only `initialize`; `server/discover` is an unknown method.
    Legacy,
    /// Only `server/discover`; `initialize` names an unsupported version.
    Modern,
}

impl ServedEras {
    /// The supported versions, oldest first.
    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Self::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }

    /// The version offered to a client that requests an unsupported one.
    pub(crate) fn newest(self) -> ProtocolVersion {
        match self {
            Self::Legacy => ProtocolVersion::V_2025_11_25,
            Self::Both | Self::Modern => ProtocolVersion::V_2026_07_28,
        }
    }

    /// The response to a request of an unsupported era.
    ///
    /// `rmcp` would end the connection instead (`initialize` to a modern server), or reveal that it
    /// knows the method (`server/discover` to a legacy one).
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
