//! Access: `login`, `logout`, `token`, `secret`, `trust`, `enable` and `disable`.

use serde_json::{Value, json};

use super::definitions::flag;
use super::keywords::{
    Member, boolean, count, document, list, map, nullable, object, text, versioned, word,
};

pub(super) fn login() -> Vec<Value> {
    let login = object(&[
        ("server", text(), ""),
        ("login", text(), "`logged in`, `expired`, `none`, `not needed`, or why it has none."),
        ("issuer", nullable(text()), ""),
        ("scopes", nullable(list(text())), ""),
        ("renewable", nullable(boolean()), ""),
    ]);
    vec![
        document(&[
            ("server", text(), ""),
            ("issuer", text(), ""),
            ("scopes", list(text()), ""),
            flag("renewable", "Whether it is renewed by itself."),
            ("state", text(), "The state of the server with this login."),
        ]),
        document(&[("logins", list(login), "With `--status`.")]),
    ]
}

pub(super) fn logout() -> Vec<Value> {
    vec![document(&[
        ("server", text(), ""),
        flag("removed", "Whether there was a login."),
        ("revoked", nullable(boolean()), "Null without a revocation endpoint."),
    ])]
}

fn stored_token() -> Vec<Member> {
    vec![
        ("name", text(), ""),
        ("agent", nullable(text()), ""),
        ("bundles", list(text()), ""),
        ("access", nullable(text()), ""),
        ("created", nullable(text()), "A date."),
        ("digest", text(), "The beginning of its digest."),
    ]
}

pub(super) fn token() -> Vec<Value> {
    let mut added = stored_token();
    added.push(("token", text(), "The token, which is printed only once."));
    let stored = object(&stored_token());
    vec![
        document(&added),
        document(&[("file", text(), ""), ("tokens", list(stored.clone()), "")]),
        document(&[("removed", stored, "")]),
    ]
}

pub(super) fn secret() -> Vec<Value> {
    let kind = || word(&["keychain", "file"]);
    let named = object(&[("name", text(), ""), ("store", kind(), "")]);
    let store = object(&[("kind", kind(), ""), ("description", text(), "")]);
    let moved = object(&[("secrets", list(text()), ""), ("logins", count(), "")]);
    vec![
        document(&[("stored", named.clone(), "")]),
        document(&[("removed", named, "")]),
        document(&[("store", store, ""), ("secrets", list(text()), ""), ("logins", count(), "")]),
        document(&[
            ("store", kind(), ""),
            ("moved", moved, ""),
            ("changedMeanwhile", count(), "Entries that are in both stores."),
        ]),
        document(&[
            ("kind", kind(), ""),
            ("description", text(), ""),
            ("reason", text(), "Why this store is used."),
            ("key", nullable(text()), "The key of encrypted files."),
        ]),
    ]
}

pub(super) fn trust() -> Vec<Value> {
    let file = vec![("path", text(), ""), ("sha256", text(), ""), ("uses", list(text()), "")];
    let mut asked = file.clone();
    asked.push(flag("trusted", ""));
    let mut listed = file;
    listed.push((
        "outsideFiles",
        json!({}),
        "The files outside of its directory that it may read.",
    ));
    listed.push(("since", text(), "A date."));
    vec![
        document(&asked),
        document(&[("files", list(object(&listed)), "With `--list`.")]),
        document(&[(
            "revoked",
            list(text()),
            "With `--revoke`: files that are not trusted any more.",
        )]),
    ]
}

pub(super) fn toggles() -> Vec<Value> {
    let toggles = object(&[
        ("servers", map(boolean()), "Whether each is on."),
        ("tools?", map(boolean()), ""),
        ("prompts?", map(boolean()), ""),
    ]);
    let switched =
        object(&[("kind", word(&["server", "tool", "prompt"]), ""), ("name", text(), "")]);
    let switched = object(&[
        ("switched", list(switched), ""),
        flag("on", "False after `disable`."),
        ("conversation", nullable(text()), "Null for the whole project."),
        ("directory", text(), "The directory of the project."),
    ]);
    vec![
        document(&[
            ("project", nullable(toggles.clone()), ""),
            ("conversations", map(toggles), ""),
        ]),
        versioned(switched),
    ]
}
