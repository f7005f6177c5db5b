//! Changes of files: `add`, `remove`, `init`, `import`, `install`, `uninstall` and `man`.

use serde_json::Value;

use super::definitions::flag;
use super::keywords::{boolean, document, list, nullable, object, text};

pub(super) fn change() -> Vec<Value> {
    vec![document(&[
        ("file", text(), ""),
        flag("written", "False with `--dry-run`."),
        ("backup", nullable(text()), "The file as it was."),
    ])]
}

pub(super) fn import() -> Vec<Value> {
    let server = object(&[
        ("host", text(), ""),
        ("file", text(), "The file of the host."),
        ("server", text(), "Its name in that file."),
        ("transport", text(), ""),
        ("endpoint", text(), "Its command line or URL, without secrets."),
        ("enabled", boolean(), ""),
        ("name", nullable(text()), "The name that it is imported as; null if it is not."),
        ("sameAs", nullable(text()), "The server that is the same."),
        ("differsFrom", nullable(text()), "The server that has its name, and is not the same."),
        ("notes", list(text()), "Keys that have no effect here, and the like."),
        ("literalCredentials", list(text()), "Names of credentials in plain text."),
    ]);
    vec![document(&[
        ("servers", list(server), ""),
        ("failures", list(text()), "Files and entries that cannot be read."),
        ("notes", list(text()), "Rules and entries beside the servers that are not carried over."),
        ("file", text(), "The file of Trunkline."),
        flag("written", ""),
        ("backup", nullable(text()), "The file as it was."),
        ("movedSecrets", list(text()), "Credentials that are in the store for secrets now."),
    ])]
}

pub(super) fn install() -> Vec<Value> {
    vec![document(&[
        ("host", text(), ""),
        ("file", text(), "The file of the host."),
        ("name", text(), "The name of the entry."),
        flag("changed", ""),
        ("backup", nullable(text()), "The file as it was."),
        ("diff", text(), ""),
    ])]
}

pub(super) fn man() -> Vec<Value> {
    vec![document(&[("directory", text(), ""), ("pages", list(text()), "")])]
}
