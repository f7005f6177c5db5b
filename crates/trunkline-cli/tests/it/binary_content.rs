//! Binary content of results that cannot be decoded.

use serde_json::json;

use crate::support::canned_server::with_canned_server;
use crate::support::program::Folder;

/// A server whose tool gives a text, an image, and two blocks whose base64 is invalid.
fn folder() -> Folder {
    let blob = json!({ "uri": "x://a.pdf", "mimeType": "application/pdf", "blob": "AAAAA" });
    with_canned_server(&json!({
        "tools/list": { "tools": [{ "name": "draw", "inputSchema": { "type": "object" } }] },
        "tools/call": { "content": [
            { "type": "text", "text": "two pictures" },
            { "type": "image", "mimeType": "image/png", "data": "iVBORw==" },
            { "type": "image", "mimeType": "image/jpeg", "data": "not base64!" },
            { "type": "resource", "resource": blob },
        ] },
        "resources/list": { "resources": [{ "uri": "x://a.pdf", "name": "a" }] },
        "resources/read": { "contents": [blob] },
    }))
}

/// Seen: such a block was neither shown nor counted.
#[test]
fn binary_content_that_cannot_be_decoded_is_named() {
    let folder = folder();
    let run = folder.run(&["call", "s_draw"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.starts_with("two pictures\n[image: image/png"), "{run}");
    for message in [
        "warning: an image (image/jpeg) of the result cannot be decoded: ` ` at position 3 is not base64\n",
        "warning: a resource (application/pdf) of the result cannot be decoded: its base64 ends in the middle of a byte\n",
        "1 binary part of the result is not shown",
    ] {
        assert!(run.messages.contains(message), "{message}: {run}");
    }
    let run = folder.run(&["call", "s_draw", "-q"]);
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    // As JSON, the result is complete.
    let run = folder.run(&["call", "s_draw", "--format", "json"]);
    assert_eq!((run.code, run.messages.as_str()), (0, ""), "{run}");
    assert_eq!(run.json()["content"][2]["data"], "not base64!", "{run}");
}

#[test]
fn binary_content_that_cannot_be_saved_is_a_failure() {
    let folder = folder();
    for options in [&["-q"][..], &["--format", "json"]] {
        let run = folder.run(&[&["call", "s_draw", "--artifacts", "kept"], options].concat());
        assert_eq!(run.code, 1, "{run}");
        let message = "error: an image (image/jpeg) of the result could not be saved: ` ` at position 3 is not base64\n";
        assert!(run.messages.contains(message), "{run}");
        assert!(run.output.contains("kept/image-"), "{run}");
        assert_eq!(std::fs::read_dir(folder.project().join("kept")).unwrap().count(), 1);
    }
    let run = folder.run(&["read", "x://a.pdf", "--artifacts", "none"]);
    assert_eq!(run.code, 1, "{run}");
    let message = "error: a resource (application/pdf) of the result could not be saved";
    assert!(run.messages.contains(message), "{run}");
    assert!(!folder.project().join("none").exists());
}
