//! Measures result handling: within the limit, truncated, and rendered for a model.

use serde_json::{Value, json};
use trunkline::content::{ResultKind, SourceTrust, text_for_model, truncate};
use trunkline::message::Raw;

use crate::measure::{Effort, in_turn, time};
use crate::table::{Aim, Row, Table};

const MEGABYTE: usize = 1_000_000;

/// Sizes of results. The limits leave each whole, or cut it to a half.
const SIZES: [usize; 2] = [MEGABYTE, 5 * MEGABYTE];

/// Allowed cost of a result within the limit: independent of its size.
const PASSING: Aim = Aim::Ratio(0.1);

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    for size in SIZES {
        for (shape, value) in [("one text", one_text(size)), ("many texts", many_texts(size))] {
            let name = format!("results: {} MB, {shape}", size / MEGABYTE);
            let result = Raw::from_value(&value);
            let mut compare = |what: &str, aim: Option<Aim>, work: &dyn Fn() -> usize| {
                let (ours, plain) = in_turn(
                    effort.many_rounds(),
                    || time(work),
                    || time(|| serde_json::from_str::<Value>(result.text())),
                );
                table.push(Row {
                    name: format!("{name}, {what}"),
                    measured: ours.into(),
                    baseline: Some(("serde_json::Value of the same bytes", plain.into())),
                    aim,
                });
            };
            let kind = ResultKind::ToolCall;
            let capped_to = |bound: usize| truncate(kind, &result, bound).result.bytes().len();
            compare("within the bound", Some(PASSING), &|| capped_to(2 * size));
            compare("cut to a half", None, &|| capped_to(size / 2));
            compare("as text", None, &|| text_for_model(kind, &result, SourceTrust::Trusted).len());
        }
    }
}

/// A text with characters to escape in every line.
fn text(size: usize) -> String {
    "A line with \"quotes\", and an é in it.\n".repeat(size / 43 + 1)
}

fn one_text(size: usize) -> Value {
    json!({ "content": [{ "type": "text", "text": text(size) }], "isError": false })
}

fn many_texts(size: usize) -> Value {
    let block = json!({ "type": "text", "text": text(1000) });
    json!({ "content": vec![block; size / 1100], "isError": false })
}
