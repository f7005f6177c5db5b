//! Types of schemas that are usual, odd or endless.

use serde_json::json;

use super::*;

fn rendered(language: TypeLanguage) -> String {
    let tools = [
        TypedTool::new(
            "a_get-sum",
            &json!({ "description": "Adds. */ }", "inputSchema": { "type": "object",
            "required": ["a"], "properties": {
                "a": { "type": "number", "description": "first" },
                "odd key\"": { "enum": ["x", 1, null] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/n" } },
                "any": {}, "either": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
            "$defs": { "n": { "type": "object", "properties": { "deep": { "$ref": "#/$defs/n" } } } } } }),
        ),
        TypedTool::new("a_get_sum", &json!({})),
        TypedTool::new(
            "1st",
            &json!({ "inputSchema": { "type": "object" }, "outputSchema": true }),
        ),
    ];
    render(&tools, language)
}

#[test]
fn typescript_has_a_type_per_tool() {
    let text = rendered(TypeLanguage::TypeScript);
    for part in [
        "export type AGetSumArguments = {\n",
        "  /** first */\n  \"a\": number;\n",
        r#"  "odd key\""?: "x" | 1 | null;"#,
        r#"  "either"?: string | null;"#,
        "export type AGetSum2Arguments = Record<string, unknown>;",
        "export type Tool1stArguments = ",
        "/** Adds. * / } */",
        "\"a_get-sum\": { arguments: AGetSumArguments; structuredContent: AGetSumResult };",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn python_has_a_type_per_tool() {
    let text = rendered(TypeLanguage::Python);
    for part in [
        "AGetSumArguments = TypedDict(\"AGetSumArguments\", {\n",
        "    \"a\": float,\n",
        r#"    "odd key\"": NotRequired[Literal["x", 1, None]],"#,
        "    \"either\": NotRequired[(str | None)],\n",
        "    \"a_get_sum\": (Any, Any),",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
