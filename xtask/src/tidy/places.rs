//! Restricts environment, terminal, home directory and the choice of error codes to designated
//! files.

use super::references::{self, HIDDEN, Reference};
use super::source::{Role, Source};
use super::violation::Violation;

/// Sources with restricted access; tests and development tools have none.
const KEPT_CLEAN: &[&str] = &[
    "crates/trunkline/src/",
    "crates/trunkline-secrets/src/",
    "crates/trunkline-state/src/",
    "crates/trunkline-gateway/src/",
    "crates/trunkline-cli/src/",
];

/// Sources in which a JSON-RPC error is made by name.
const GATEWAY: &[&str] = &["crates/trunkline-gateway/src/"];

/// Advice for a part of the process environment.
const PASS_IT_IN: &str = "take the value as an argument";

/// A restricted subject, the names that access it, and the files that may use them.
struct Place {
    what: &'static str,
    within: &'static [&'static str],
    homes: &'static [&'static str],
    names: &'static [&'static str],
    remedy: &'static str,
}

/// A name matches anywhere in a path; a segment that ends in `*` matches by prefix.
const PLACES: &[Place] = &[
    Place {
        what: "the environment of the process",
        within: KEPT_CLEAN,
        homes: &["crates/trunkline/src/env.rs", "crates/trunkline-cli/src/environment.rs"],
        names: &[
            "env::args*",
            "env::current_dir",
            "env::current_exe",
            "env::remove_var",
            "env::set_*",
            "env::temp_dir",
            "env::var*",
            "std::env::*",
        ],
        remedy: PASS_IT_IN,
    },
    Place {
        what: "the home directory",
        within: KEPT_CLEAN,
        homes: &["crates/trunkline/src/env.rs", "crates/trunkline-cli/src/environment.rs"],
        names: &[
            "env::home_dir",
            "dirs::cache_dir",
            "dirs::config_dir",
            "dirs::data_dir",
            "dirs::home_dir",
            "directories::BaseDirs",
            "directories::ProjectDirs",
            "etcetera::home_dir",
            "home::home_dir",
        ],
        remedy: PASS_IT_IN,
    },
    Place {
        what: "the terminal",
        within: KEPT_CLEAN,
        homes: &["crates/trunkline-cli/src/output/terminal.rs"],
        names: &[
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "dbg!",
            "io::stdin",
            "io::stdout",
            "io::stderr",
            "std::io::*",
            "IsTerminal",
        ],
        remedy: PASS_IT_IN,
    },
    Place {
        what: "the choice of an error code",
        within: GATEWAY,
        homes: &[
            "crates/trunkline-gateway/src/request/errors.rs",
            "crates/trunkline-gateway/src/handlers/error_codes.rs",
        ],
        names: &["RpcError::new"],
        remedy: "add a function there",
    },
];

/// Reports accesses outside the designated file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if source.role != Role::Production {
        return Vec::new();
    }
    let mut found = Vec::new();
    for reference in references::collect(&source.syntax) {
        for place in PLACES.iter().filter(|place| place.restricts(source)) {
            if place.names.iter().any(|name| is_named(&reference, name)) {
                found.push(violation(source, &reference, place));
            }
        }
    }
    found
}

impl Place {
    fn restricts(&self, source: &Source) -> bool {
        let is_inside = |folder: &&str| source.path.starts_with(*folder);
        self.within.iter().any(is_inside) && !self.homes.contains(&&*source.path)
    }
}

fn is_named(reference: &Reference, name: &str) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    let mut windows = reference.segments.windows(parts.len());
    windows.any(|window| window.iter().zip(&parts).all(|(segment, part)| matches(segment, part)))
}

fn matches(segment: &str, part: &str) -> bool {
    match part.strip_suffix('*') {
        // A lone `*` is a glob import that hides its names, not any name.
        Some("") => segment == HIDDEN,
        Some(beginning) => segment.starts_with(beginning),
        None => segment == part,
    }
}

fn violation(source: &Source, reference: &Reference, place: &Place) -> Violation {
    Violation {
        path: source.path.clone(),
        line: reference.line,
        problem: format!("`{}` touches {}", reference.segments.join("::"), place.what),
        remedy: format!("only {} may; {}", place.homes.join(" and "), place.remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let source = Source::parse(path, text).unwrap();
        check(&source).iter().map(ToString::to_string).collect()
    }

    const USES: &[&str] = &[
        "fn f() { std::env::var_os(\"A\"); }",
        "use std::env; fn f() { env::vars(); }",
        "use std::env::{current_dir};",
        "use std::env as hidden;",
        "use std::env::*;",
        "fn f() { std::env::args(); }",
        "fn f() { std::env::current_exe(); }",
        "fn f() { std::env::home_dir(); }",
        "fn f() { println!(); }",
        "fn f() { std::eprint!(); }",
        "fn f() { std::io::stdin(); }",
        "fn f() { tokio::io::stdout(); }",
        "use std::io::IsTerminal as _;",
        "fn f() { format!(\"{:?}\", std::env::var(\"A\")); }",
    ];

    #[test]
    fn libraries_touch_nothing_around_them() {
        for text in USES {
            for path in ["crates/trunkline/src/a.rs", "crates/trunkline-gateway/src/a.rs"] {
                assert_eq!(problems(path, text).len(), 1, "{text}");
            }
        }
    }

    #[test]
    fn the_program_touches_each_in_one_file() {
        let environment = "fn f() { std::env::var(\"A\"); }";
        let terminal = "fn f() { println!(); }";
        assert!(problems("crates/trunkline-cli/src/environment.rs", environment).is_empty());
        assert!(problems("crates/trunkline-cli/src/output/terminal.rs", terminal).is_empty());
        assert_eq!(problems("crates/trunkline-cli/src/output/terminal.rs", environment).len(), 1);
        assert_eq!(
            problems("crates/trunkline-cli/src/main.rs", terminal),
            ["crates/trunkline-cli/src/main.rs:1: `println!` touches the terminal; \
              only crates/trunkline-cli/src/output/terminal.rs may; take the value as an argument"]
        );
    }

    #[test]
    fn the_gateway_chooses_error_codes_in_two_files() {
        let text = "fn f() { RpcError::new(code::INVALID_PARAMS, \"no\"); }";
        let gateway = "crates/trunkline-gateway/src";
        assert_eq!(problems(&format!("{gateway}/handlers/list.rs"), text).len(), 1);
        assert!(problems(&format!("{gateway}/handlers/error_codes.rs"), text).is_empty());
        assert!(problems(&format!("{gateway}/request/errors.rs"), text).is_empty());
        assert!(problems("crates/trunkline/src/a.rs", text).is_empty());
    }

    #[test]
    fn tests_and_tools_are_free() {
        for text in USES {
            let tests = format!("#[cfg(test)] mod tests {{ {text} }}");
            assert!(problems("crates/trunkline/src/a.rs", &tests).is_empty(), "{text}");
            assert!(problems("crates/trunkline/tests/a.rs", text).is_empty(), "{text}");
            assert!(problems("crates/trunkline-testkit/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn values_known_when_compiling_and_other_io_are_free() {
        let text =
            "use std::io::{Read, Error as IoError}; const A: &str = env!(\"CARGO_PKG_NAME\");
                    fn f(c: &mut Command) { c.env(\"A\", \"B\").stdout(Stdio::null()); }";
        assert!(problems("crates/trunkline/src/a.rs", text).is_empty());
    }
}
