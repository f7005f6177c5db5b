//! The conversation of a request: named by a header, or in the query of the address (TOOL-9).

use axum::http::{HeaderMap, HeaderName, Uri};
use percent_encoding::percent_decode_str;
use trunkline::name::ConversationName;

/// The header that names the conversation. Its value is percent-encoded if it is not ASCII.
pub(super) static CONVERSATION_HEADER: HeaderName =
    HeaderName::from_static("trunkline-conversation");

/// The parameter of the address that names the conversation, for clients without headers.
const PARAMETER: &str = "conversation";

/// The conversation of a request, if it names one.
///
/// # Errors
///
/// Returns the text of the response if the name is invalid, or the header and the address name two.
/// Serving such a request with the items of no conversation would show what is switched off.
pub(super) fn of_request(
    headers: &HeaderMap,
    address: &Uri,
) -> Result<Option<ConversationName>, String> {
    let mut found = None;
    for value in headers.get_all(&CONVERSATION_HEADER) {
        add(&mut found, value.to_str().ok(), "the header `Trunkline-Conversation`")?;
    }
    let pairs = address.query().into_iter().flat_map(|query| query.split('&'));
    for value in pairs.filter_map(parameter) {
        // As forms and most libraries write a space.
        let value = value.replace('+', " ");
        add(&mut found, Some(&value), "`conversation` in the address")?;
    }
    Ok(found)
}

/// The value of a query parameter, if it is the one that names the conversation.
fn parameter(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (name == PARAMETER).then_some(value)
}

fn add(
    found: &mut Option<ConversationName>,
    written: Option<&str>,
    place: &str,
) -> Result<(), String> {
    let decoded = written.and_then(|value| percent_decode_str(value).decode_utf8().ok());
    let text = decoded.ok_or_else(|| format!("{place} is not percent-encoded UTF-8\n"))?;
    let name = ConversationName::new(&text).map_err(|error| format!("{place}: {error}\n"))?;
    match found {
        Some(other) if *other != name => Err("the request names two conversations\n".to_owned()),
        _ => {
            *found = Some(name);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: Option<&str>, address: &str) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert(&CONVERSATION_HEADER, value.parse().unwrap());
        }
        let found = of_request(&headers, &address.parse().unwrap())?;
        Ok(found.map(|name| name.as_str().to_owned()))
    }

    #[test]
    fn header_or_address_names_the_conversation() {
        let named = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(of(None, "/mcp"), Ok(None));
        assert_eq!(of(Some("chat-7"), "/mcp"), named("chat-7"));
        assert_eq!(of(None, "/mcp?a=1&conversation=gr%C3%B6%C3%9Fe"), named("größe"));
        assert_eq!(of(Some("a"), "/mcp?conversation=a"), named("a"));
        assert_eq!(of(None, "/mcp?conversation=my+chat%2B"), named("my chat+"));
    }

    #[test]
    fn wrong_names_are_refused() {
        for (header, address) in [
            (Some("a"), "/mcp?conversation=b"),
            (Some(""), "/mcp"),
            (None, "/mcp?conversation"),
            (None, "/mcp?conversation=a&conversation=b"),
            (None, "/mcp?conversation=%ff"),
            (None, "/mcp?conversation=%0a"),
        ] {
            assert!(of(header, address).is_err(), "{header:?} {address}");
        }
    }
}
