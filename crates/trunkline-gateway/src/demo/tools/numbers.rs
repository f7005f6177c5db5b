//! Tools for numbers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::{Arguments, Output, Tool, object_schema};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "add",
        expects: "`a` and `b`, both numbers, and nothing else",
        describe: describe_add,
        run: add,
    },
    Tool {
        name: "roll",
        expects: "nothing, or `sides`, an integer from 2 to 1000",
        describe: describe_roll,
        run: roll,
    },
    Tool {
        name: "convert",
        expects: "`celsius`, a number of at least -273.15, and nothing else",
        describe: describe_convert,
        run: convert,
    },
];

const SIDES: RangeInclusive<u64> = 2..=1000;
const USUAL_SIDES: u64 = 6;

const ABSOLUTE_ZERO: f64 = -273.15;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Summands {
    a: Number,
    b: Number,
}

fn describe_add() -> Value {
    let summand = |which| json!({ "type": "number", "description": which });
    json!({
        "title": "Add",
        "description": "Add two numbers.",
        "inputSchema": object_schema(
            &["a", "b"],
            &json!({ "a": summand("The first number."), "b": summand("The second number.") }),
        ),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn add(arguments: Arguments) -> Result<Output, String> {
    let Summands { a, b } = arguments.read()?;
    // Integers are added as such: beyond 2^53 a float would lose their last digits.
    if let (Some(a), Some(b)) = (a.as_i128(), b.as_i128()) {
        return Ok(Output::text((a + b).to_string()));
    }
    let sum = a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b);
    match sum.filter(|sum| sum.is_finite()) {
        Some(sum) => Ok(Output::text(sum.to_string())),
        None => Err("the sum is too large".to_owned()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Die {
    sides: Option<u64>,
}

fn describe_roll() -> Value {
    let sides = json!({
        "type": "integer",
        "minimum": SIDES.start(),
        "maximum": SIDES.end(),
        "default": USUAL_SIDES,
        "description": "How many sides the die has.",
    });
    json!({
        "title": "Roll a die",
        "description": "Roll a die and say what came up, from 1 to the number of its sides.",
        "inputSchema": object_schema(&[], &json!({ "sides": sides })),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn roll(arguments: Arguments) -> Result<Output, String> {
    let Die { sides } = arguments.read()?;
    let sides = sides.unwrap_or(USUAL_SIDES);
    if !SIDES.contains(&sides) {
        return Err(format!("a die with {sides} sides"));
    }
    // The keys of every `RandomState` are random: enough for a die, without a dependency.
    let random = RandomState::new().build_hasher().finish();
    Ok(Output::text((random % sides + 1).to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Temperature {
    celsius: f64,
}

fn describe_convert() -> Value {
    let celsius = json!({
        "type": "number",
        "minimum": ABSOLUTE_ZERO,
        "description": "The temperature in degrees Celsius.",
    });
    json!({
        "title": "Convert a temperature",
        "description": "Convert a temperature from degrees Celsius to degrees Fahrenheit.",
        "inputSchema": object_schema(&["celsius"], &json!({ "celsius": celsius })),
        "outputSchema": object_schema(&["fahrenheit"], &json!({ "fahrenheit": { "type": "number" } })),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn convert(arguments: Arguments) -> Result<Output, String> {
    let Temperature { celsius } = arguments.read()?;
    if celsius < ABSOLUTE_ZERO {
        return Err(format!("{celsius} is below absolute zero"));
    }
    let fahrenheit = celsius * 9.0 / 5.0 + 32.0;
    if fahrenheit.is_finite() {
        Ok(Output::structured(json!({ "fahrenheit": fahrenheit })))
    } else {
        Err(format!("{celsius} is too large"))
    }
}
