//! Asks on a terminal for the arguments that a tool or prompt needs and that were not given.

use anyhow::Result;
use trunkline::message::Raw;

use super::elicitation::ask_field;
use crate::output::terminal::Terminal;
use crate::typed::ArgumentSchema;

/// Adds the missing arguments, if the user can be asked. Elsewhere, and for those that the user leaves out, the
/// validation of the arguments names them.
pub(crate) async fn ask(given: Raw, schema: &ArgumentSchema, terminal: &Terminal) -> Result<Raw> {
    let mut given = given;
    if !terminal.can_ask() {
        return Ok(given);
    }
    for name in schema.required() {
        if given.get(name).is_some() {
            continue;
        }
        match ask_field(name, schema, terminal).await? {
            Some(value) => given = given.with(name, &Raw::from_value(&value)),
            None => break,
        }
    }
    Ok(given)
}
