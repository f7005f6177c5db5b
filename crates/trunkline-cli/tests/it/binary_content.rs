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
    let shown =
        "two pictures\n[image: image/png, 4 bytes]\n[image: image/jpeg, not valid base64]\n";
    assert!(run.output.starts_with(shown), "{run}");
    for message in [
        "warning: an image (image/jpeg) of the result cannot be decoded: ` ` at position 3 is not base64\n  `--format json` prints it as it is\n",
        "warning: the resource `x://a.pdf` (application/pdf) of the result cannot be decoded: its base64 ends in the middle of a byte\n",
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
        let message = "error: an image (image/jpeg) of the result could not be saved: ` ` at position 3 is not base64\n  `--format json` prints it as it is\n";
        assert!(run.messages.contains(message), "{run}");
        assert!(run.output.contains("kept/image-"), "{run}");
        assert_eq!(std::fs::read_dir(folder.project().join("kept")).unwrap().count(), 1);
    }
    let run = folder.run(&["read", "x://a.pdf", "--artifacts", "none"]);
    assert_eq!(run.code, 1, "{run}");
    let message =
        "error: the resource `x://a.pdf` (application/pdf) of the result could not be saved";
    assert!(run.messages.contains(message), "{run}");
    assert!(!folder.project().join("none").exists());
}

/// Seen: each was said not to be written because of its folder.
#[test]
fn the_limits_of_files_are_named() {
    let image = |at: usize| {
        let data = format!("{at:04}");
        json!({ "type": "image", "mimeType": "image/png", "data": data })
    };
    let images: Vec<_> = (0..103).map(image).collect();
    let folder = with_canned_server(&json!({
        "tools/list": { "tools": [{ "name": "draw", "inputSchema": { "type": "object" } }] },
        "tools/call": { "content": images },
    }));
    let run = folder.run(&["call", "s_draw", "--artifacts", "kept"]);
    assert_eq!(run.code, 1, "{run}");
    let message = "error: 3 binary parts of the result could not be saved: the limit is 100 files and 50 MiB for one result\n  \
                   `--format json` prints them; a tool that takes pages or ranges returns less at once\n";
    assert_eq!(run.messages, message, "{run}");
    assert_eq!(std::fs::read_dir(folder.project().join("kept")).unwrap().count(), 100);
}

/// Seen: neither the limit nor where it is set.
#[test]
fn the_limit_of_a_result_is_named_with_its_key() {
    let data = "AAAA".repeat(30_000);
    let mut server = crate::support::canned_server::canned_server(&json!({
        "tools/list": { "tools": [{ "name": "draw", "inputSchema": { "type": "object" } }] },
        "tools/call": { "content": [{ "type": "image", "mimeType": "image/png", "data": data }] },
    }));
    server["maxResultBytes"] = json!(65536);
    let config = json!({ "mcpServers": { "s": server } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    let run = folder.run(&["call", "s_draw", "--artifacts", "kept"]);
    let message = "bytes of the result are missing: the limit is 64 KiB\n  set `maxResultBytes` of server `s` to \
                   more, at most 16777216\n";
    assert!(run.messages.contains(message), "{run}");
}
