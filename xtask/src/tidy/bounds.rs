//! Checks that the table of limits in `docs/security.md` matches the constants in the code.

use std::fs;

use anyhow::Result;
use syn::{BinOp, Expr, ExprCall, Item, ItemConst, Lit};

use super::source::{Role, Source};
use super::violation::Violation;
use crate::workspace::Workspace;

const PAGE: &str = "docs/security.md";

/// Units in the table. Sizes are in bytes, durations in milliseconds.
const UNITS: &[(&str, u128)] = &[
    ("bytes", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("days", 86_400_000),
];

/// Reports rows whose constant is missing, ambiguous, or has another value.
pub(crate) fn check(
    workspace: &Workspace,
    files: &[String],
    sources: &[Source],
) -> Result<Vec<Violation>> {
    if !files.iter().any(|file| file == PAGE) {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(workspace.join(PAGE))?;
    Ok(check_page(&text, sources))
}

fn check_page(text: &str, sources: &[Source]) -> Vec<Violation> {
    let rows = text.lines().enumerate().filter_map(|(index, line)| Some((index, Row::read(line)?)));
    rows.filter_map(|(index, row)| {
        let (problem, remedy) = row.check(sources).err()?;
        Some(Violation { path: PAGE.to_owned(), line: index + 1, problem, remedy })
    })
    .collect()
}

/// One row of the table: `| subject | bound | effect | CONSTANT in file.rs |`.
struct Row<'a> {
    bound: &'a str,
    constant: &'a str,
    /// The end of the path of the file that defines the constant.
    file: Option<&'a str>,
}

/// A problem with a row, and its remedy.
type Problem = (String, String);

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [_, bound, _, place, _] = cells[..] else { return None };
        let mut quoted = place.split('`').skip(1).step_by(2);
        let constant = quoted.next().filter(|name| is_constant(name))?;
        Some(Self { bound, constant, file: quoted.next() })
    }

    fn check(&self, sources: &[Source]) -> Result<(), Problem> {
        let name = self.constant;
        let defined = self.definition(sources)?;
        let value = evaluate(&defined.item.expr, defined.source).ok_or_else(|| {
            let problem = format!("the value of `{name}` cannot be evaluated");
            (problem, "write it as a product of literals or a Duration".to_owned())
        })?;
        match quantity(self.bound) {
            Some(stated) if stated == value => Ok(()),
            _ => Err((
                format!("the table says {:?}, and `{name}` is {value}", self.bound),
                "state the value of the constant, as in 16 MiB, 1,024 or 75 s".to_owned(),
            )),
        }
    }

    fn definition<'s>(&self, sources: &'s [Source]) -> Result<Definition<'s>, Problem> {
        let is_searched = |source: &&Source| {
            source.role == Role::Production
                && source.is_crate_source()
                && self.file.is_none_or(|file| source.path.ends_with(file))
        };
        let mut found = sources.iter().filter(is_searched).flat_map(|source| {
            let named = constants(source).filter(|item| item.ident == self.constant);
            named.map(move |item| Definition { item, source })
        });
        let name = self.constant;
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err((
                format!("there is no constant `{name}`"),
                "name the constant that sets the bound".to_owned(),
            )),
            (Some(_), Some(_)) => Err((
                format!("there are several constants `{name}`"),
                "add the file: `NAME` in `folder/file.rs`".to_owned(),
            )),
        }
    }
}

/// A constant and the file that defines it.
struct Definition<'s> {
    item: &'s ItemConst,
    source: &'s Source,
}

fn is_constant(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|it| it.is_ascii_uppercase() || it == '_')
}

fn constants(source: &Source) -> impl Iterator<Item = &ItemConst> {
    source.syntax.items.iter().filter_map(|item| match item {
        Item::Const(constant) => Some(constant),
        _ => None,
    })
}

/// Evaluates a constant expression; durations in milliseconds.
fn evaluate(expression: &Expr, source: &Source) -> Option<u128> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Paren(inner) => evaluate(&inner.expr, source),
        Expr::Cast(cast) => evaluate(&cast.expr, source),
        Expr::Path(path) => {
            let name = path.path.get_ident()?;
            evaluate(&constants(source).find(|item| item.ident == *name)?.expr, source)
        }
        Expr::Binary(binary) => {
            let (left, right) = (evaluate(&binary.left, source)?, evaluate(&binary.right, source)?);
            match binary.op {
                BinOp::Mul(_) => left.checked_mul(right),
                BinOp::Div(_) => left.checked_div(right),
                BinOp::Add(_) => left.checked_add(right),
                BinOp::Sub(_) => left.checked_sub(right),
                BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                _ => None,
            }
        }
        Expr::Call(call) => duration(call, source),
        _ => None,
    }
}

/// The milliseconds of `Duration::from_secs(…)` and `Duration::from_millis(…)`.
fn duration(call: &ExprCall, source: &Source) -> Option<u128> {
    let Expr::Path(path) = &*call.func else { return None };
    let argument = evaluate(call.args.first()?, source)?;
    match path.path.segments.last()?.ident.to_string().as_str() {
        "from_millis" => Some(argument),
        "from_secs" => argument.checked_mul(1_000),
        _ => None,
    }
}

/// The first number in a table cell: `16 MiB`, `1,024`, `75 s`.
fn quantity(cell: &str) -> Option<u128> {
    let mut words = cell.split_whitespace();
    let number: u128 = words.next()?.trim_end_matches(';').replace(',', "").parse().ok()?;
    let unit = words.next().map(|word| word.trim_end_matches([',', ';']));
    let factor =
        UNITS.iter().find(|(name, _)| Some(*name) == unit).map_or(1, |(_, factor)| *factor);
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "const MAX_BYTES: usize = 16 * 1024 * KIB;\nconst KIB: usize = 1 << 10;\n\
                        const REQUEST_TIMEOUT: Duration = Duration::from_secs(2 * 60);\n\
                        const MAX_CALLS: usize = 1_024;";

    fn problems(row: &str) -> Vec<String> {
        let sources = [
            Source::parse("crates/a/src/one.rs", CODE).unwrap(),
            Source::parse("crates/a/src/two.rs", "const MAX_CALLS: usize = 7;").unwrap(),
        ];
        check_page(row, &sources).into_iter().map(|violation| violation.problem).collect()
    }

    #[test]
    fn rows_that_state_the_value_of_their_constant_pass() {
        for row in [
            "| a message | 16 MiB | refused | `MAX_BYTES` |",
            "| a message | 16,384 KiB, of all | refused | `MAX_BYTES` |",
            "| a request | 2 min | ended | `REQUEST_TIMEOUT` |",
            "| a request | 120 s | ended | `REQUEST_TIMEOUT` |",
            "| calls | 1,024 of a server | wait | `MAX_CALLS` in `src/one.rs` |",
            "| calls | 7 | wait | `MAX_CALLS` in `two.rs` |",
            "| what | bound | effect | constant |",
            "|---|---|---|---|",
            "| a result | 5 MiB | cut | `maxResultBytes` |",
            "Text with `MAX_BYTES` in it.",
        ] {
            assert_eq!(problems(row), [""; 0], "{row}");
        }
    }

    #[test]
    fn rows_that_state_another_value_or_no_constant_are_reported() {
        for (row, problem) in [
            ("| a | 15 MiB | b | `MAX_BYTES` |", "the table says \"15 MiB\""),
            ("| a | many | b | `MAX_BYTES` |", "the table says \"many\""),
            ("| a | 7 | b | `MAX_GONE` |", "there is no constant `MAX_GONE`"),
            ("| a | 7 | b | `MAX_CALLS` |", "there are several constants `MAX_CALLS`"),
        ] {
            let found = problems(row);
            assert!(found.len() == 1 && found[0].starts_with(problem), "{row}: {found:?}");
        }
    }
}
