//! Measures the tables that the search and the tokenizer add to the program, by finding them in its
//! file.
//!
//! Nothing is built for it: the program is the one that is measured, if there is one. When they
//! came, the tokenizer of `trunkline tokens` added 6.5 MB with its code, and the word vectors 3.9 MB:
//! the program grew from 12.9 to 23.4 MB.

use std::fs;

use memchr::memmem;
use trunkline_search::word_vector_table;

use crate::own_program::program_path;
use crate::table::{Aim, Quantity, Row, Table};

/// First line of the vocabulary of the tokenizer: a token in base64, and its rank.
const FIRST_TOKEN: &[u8] = b"IQ== 0\n";

/// Limit of the word vectors, so that the program stays small.
const WORD_VECTORS: Aim = Aim::Below(Quantity::Bytes(5e6));

pub(crate) fn rows(table: &mut Table) {
    let vectors = word_vector_table();
    let Some(program) = program_path().and_then(|path| fs::read(path).ok()) else {
        table.push(row("word vectors", vectors.len(), None, Some(WORD_VECTORS)));
        table.note(
            "Not measured: the vocabulary of the tokenizer in the program; \
             `cargo build --release -p trunkline-cli` makes the program.",
        );
        return;
    };
    let vectors = memmem::find(&program, vectors).map_or(0, |_| vectors.len());
    let whole = Some(program.len());
    table.push(row("word vectors", vectors, whole, Some(WORD_VECTORS)));
    table.push(row("vocabulary of the tokenizer", vocabulary_length(&program), whole, None));
}

fn row(part: &str, bytes: usize, whole: Option<usize>, aim: Option<Aim>) -> Row {
    let quantity = |bytes: usize| Quantity::Bytes(bytes as f64);
    Row {
        name: format!("search: {part} in the program"),
        measured: quantity(bytes),
        baseline: whole.map(|whole| ("the whole program", quantity(whole))),
        aim,
    }
}

/// Length of all vocabularies in a program.
fn vocabulary_length(program: &[u8]) -> usize {
    let starts = memmem::find_iter(program, FIRST_TOKEN);
    starts.map(|start| lines_of_tokens(&program[start..])).sum()
}

/// Length of the lines of tokens at the beginning of some bytes.
fn lines_of_tokens(bytes: &[u8]) -> usize {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.take_while(|line| is_token(line)).map(<[u8]>::len).sum()
}

fn is_token(line: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let Some(line) = line.strip_suffix(b"\n") else { return false };
    let mut words = line.split(|byte| *byte == b' ');
    let (token, rank, rest) = (words.next(), words.next(), words.next());
    token.is_some_and(|token| token.iter().all(is_base64))
        && rank.is_some_and(|rank| !rank.is_empty() && rank.iter().all(u8::is_ascii_digit))
        && rest.is_none()
}
