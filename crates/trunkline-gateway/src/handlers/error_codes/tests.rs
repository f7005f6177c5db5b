//! Tests of the table, row by row.

use trunkline::error::ErrorKind;
use trunkline::message::{Message, Response};
use trunkline::policy::UnknownCaller;

use super::*;

const SUBJECTS: [Subject; 6] = [
    Subject::Item(RelayMethod::Call),
    Subject::Item(RelayMethod::Prompt),
    Subject::Item(RelayMethod::Read),
    Subject::Item(RelayMethod::Completion),
    Subject::Task,
    Subject::Custom,
];

fn raw(text: &str) -> Raw {
    Raw::from_text(text).unwrap()
}

fn client(era: Era, capabilities: &str) -> ClientProfile {
    ClientProfile::new(era, "".into(), raw(capabilities), None)
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: "it failed".to_owned(), is_retryable: true }
}

/// The code of the response to each subject; `0` is a result.
fn codes(era: Era, capabilities: &str, failure: &Failure) -> [i64; 6] {
    let (client, params) = (&client(era, capabilities), &raw(r#"{"uri":"x://y"}"#));
    SUBJECTS.map(|subject| {
        let request = FailedRequest { client, subject, params };
        request.response(failure).map_or_else(|error| error.code(), |_| 0)
    })
}

#[test]
fn the_gateways_own_failures_have_a_code_for_every_method_and_era() {
    let table = [
        // Columns: tools/call, prompts/get, resources/read, completion/complete, task, custom.
        (
            Era::Legacy,
            FailureKind::Unknown { hint: None },
            [-32602, -32602, -32002, -32602, -32602, -32602],
        ),
        (
            Era::Modern,
            FailureKind::Unknown { hint: None },
            [-32602, -32602, -32602, -32602, -32602, -32602],
        ),
        (Era::Legacy, FailureKind::BadArguments, [-32602, -32602, -32602, -32602, -32602, -32602]),
        (Era::Modern, FailureKind::BadArguments, [-32602, -32602, -32602, -32602, -32602, -32602]),
        (
            Era::Legacy,
            FailureKind::NoResult(NoResult::Failed),
            [0, -32603, -32603, -32603, -32603, -32603],
        ),
        (
            Era::Modern,
            FailureKind::NoResult(NoResult::Unreachable),
            [0, -32603, -32603, -32603, -32603, -32603],
        ),
        (Era::Legacy, FailureKind::Unlisted, [0, -32603, -32603, -32603, -32603, -32603]),
        (Era::Modern, FailureKind::Unlisted, [0, -32603, -32603, -32603, -32603, -32603]),
    ];
    for (era, kind, expected) in table {
        let failure = failure(kind);
        assert_eq!(codes(era, "{}", &failure), expected, "{era:?} {failure:?}");
    }
}

#[test]
fn the_errors_of_servers_have_the_codes_of_the_clients_era() {
    let table = [
        (Era::Legacy, -32602, [-32602, -32602, -32002, -32602, -32602, -32602]),
        (Era::Modern, -32602, [-32602; 6]),
        // For other methods the code has a meaning of the server's own.
        (Era::Legacy, NO_SUCH_RESOURCE, [-32002; 6]),
        (Era::Modern, NO_SUCH_RESOURCE, [-32002, -32002, -32602, -32002, -32002, -32002]),
        // A task belongs to a modern client.
        (
            Era::Legacy,
            code::MISSING_CLIENT_CAPABILITY,
            [-32603, -32603, -32603, -32603, -32021, -32603],
        ),
        (Era::Modern, code::MISSING_CLIENT_CAPABILITY, [-32021; 6]),
        (Era::Legacy, code::HEADER_MISMATCH, [-32603, -32603, -32603, -32603, -32020, -32603]),
        (Era::Modern, code::HEADER_MISMATCH, [-32020; 6]),
        (Era::Legacy, code::URL_ELICITATION_REQUIRED, [-32042; 6]),
        (
            Era::Modern,
            code::URL_ELICITATION_REQUIRED,
            [-32021, -32021, -32021, -32021, -32042, -32021],
        ),
        (Era::Legacy, -32050, [-32050; 6]),
        (Era::Modern, -32050, [-32050; 6]),
    ];
    for (era, code, expected) in table {
        let failure = failure(FailureKind::Refused(RpcError::new(code, "no")));
        assert_eq!(codes(era, "{}", &failure), expected, "{era:?} {code}");
    }
    let required = FailureKind::Refused(RpcError::new(code::URL_ELICITATION_REQUIRED, "visit"));
    let able = r#"{"elicitation":{"url":{}}}"#;
    assert_eq!(codes(Era::Modern, able, &failure(required)), [0, 0, 0, 0, -32042, 0]);
}

#[test]
fn the_kind_of_a_call_error_selects_the_row() {
    let unknown =
        UnknownCaller { what: "agent", name: "x".to_owned(), suggestion: None, is_disabled: false };
    let unknown = Failure::from(&CallError::from(unknown));
    assert!(matches!(unknown.kind, FailureKind::Unknown { hint: None }), "{unknown:?}");
    let error = CallError::from(Error::new(ErrorKind::TimedOut, "no response in time"));
    let late = Failure::from(&error);
    assert!(matches!(late.kind, FailureKind::NoResult(NoResult::Failed)), "{late:?}");
    assert_eq!((&*late.message, late.is_retryable), ("no response in time", error.is_retryable()));
}

#[test]
fn an_unknown_item_is_named_with_the_advice() {
    let (client, params) = (&client(Era::Modern, "{}"), &raw(r#"{"uri":"x://y"}"#));
    let request = FailedRequest::item(client, (RelayMethod::Read, params));
    let hidden = failure(FailureKind::Unknown { hint: Some("ask".to_owned()) });
    let error = request.response(&hidden).unwrap_err();
    assert_eq!(error.message(), "it failed; to change that: ask");
    assert_eq!(error.raw().get("data").unwrap().text(), r#"{"uri":"x://y"}"#);
}

#[test]
fn a_client_is_told_whether_to_retry() {
    let (client, params) = (&client(Era::Modern, "{}"), &raw("{}"));
    let prompt = FailedRequest::item(client, (RelayMethod::Prompt, params));
    let error = prompt.response(&failure(FailureKind::Unlisted)).unwrap_err();
    assert_eq!(error.message(), "MCP server unreachable: it failed");
    assert_eq!(error.raw().get("data").unwrap().text(), r#"{"retry":true}"#);
    let call = FailedRequest::item(client, (RelayMethod::Call, params));
    let server = ServerName::new("docs").unwrap();
    let declined = Failure::declined(Some(&server), &RpcError::new(-32601, "it cannot"));
    let result = call.response(&declined).unwrap().into_raw();
    assert_eq!(result.get("isError").unwrap().text(), "true");
    assert!(result.text().contains("server `docs` has a question, and it cannot"), "{result}");
    assert!(result.text().contains(r#""io.trunkline/retry":false"#), "{result}");
}

#[test]
fn the_other_members_of_a_servers_error_are_kept() {
    let params = raw(r#"{"uri":"x://y"}"#);
    let (modern, legacy) = (&client(Era::Modern, "{}"), &client(Era::Legacy, "{}"));
    let read = |client, error: &RpcError| {
        let request = FailedRequest::item(client, (RelayMethod::Read, &params));
        request.translated(RelayMethod::Read, error).unwrap_err()
    };
    let more = raw(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"x","more":1}}"#);
    let Ok(Message::Response(Response { outcome: Err(more), .. })) = Message::read(more.bytes())
    else {
        panic!("it is an error")
    };
    assert_eq!(read(legacy, &more).raw().text(), r#"{"code":-32002,"message":"x","more":1}"#);
    let seen = read(modern, &RpcError::new(-32002, "no such resource"));
    assert_eq!(seen.code(), code::INVALID_PARAMS);
    assert_eq!(seen.raw().get("data").unwrap().text(), r#"{"uri":"x://y"}"#);
    assert_eq!(read(legacy, &seen).code(), -32002);
    // For other methods the code has a meaning of the server's own, and the error is unchanged.
    let own = RpcError::new(-32002, "no such resource").with_data(&raw("[1]"));
    for client in [legacy, modern] {
        let request = FailedRequest::item(client, (RelayMethod::Call, &params));
        let refused = request.response(&failure(FailureKind::Refused(own.clone())));
        assert_eq!(refused.unwrap_err(), own);
    }
}

#[test]
fn a_url_elicitation_that_is_required_first_is_an_input_request() {
    let data = r#"{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://a.b"}]}"#;
    let needed = RpcError::new(code::URL_ELICITATION_REQUIRED, "visit").with_data(&raw(data));
    let (client, params) =
        (&client(Era::Modern, r#"{"elicitation":{"url":{}}}"#), &Raw::empty_object());
    let call = FailedRequest::item(client, (RelayMethod::Call, params));
    let result = call.response(&failure(FailureKind::Refused(needed))).unwrap().into_raw();
    let request = result.get("inputRequests").unwrap().get("visit-1").unwrap();
    assert_eq!(request.get("params").unwrap().text(), r#"{"mode":"url","url":"https://a.b"}"#);
}

#[test]
fn a_request_state_that_resumes_nothing_is_an_invalid_parameter() {
    for (error, text) in [
        (StateError::Foreign, "is not one of this call"),
        (StateError::Gone, "was used before"),
        (StateError::Late(Duration::from_secs(7)), "within 7s"),
    ] {
        let error = RpcError::from(error);
        assert_eq!(error.code(), code::INVALID_PARAMS);
        assert!(error.message().contains(text), "{error:?}");
        assert!(error.message().ends_with("; make the call again without it"), "{error:?}");
    }
}
