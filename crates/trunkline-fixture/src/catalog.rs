//! Definitions of the server's items, read from `catalog.json`.

use std::sync::LazyLock;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;
use serde_json::from_value;

use crate::profile::Profile;
use crate::world::WATCHED;

static CATALOG: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("catalog.json")).expect("invariant: catalog.json is JSON")
});

fn part(name: &str) -> Value {
    CATALOG[name].clone()
}

/// All tools, including the optional one if it is present.
pub(crate) fn tools(with_added: bool) -> Vec<Tool> {
    let mut tools: Vec<Tool> = from_value(part("tools")).expect("invariant: tools are tools");
    if with_added {
        tools.push(from_value(part("added_tool")).expect("invariant: it is a tool"));
    }
    tools
}

/// All prompts, including the optional one if it is present.
pub(crate) fn prompts(with_added: bool) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> =
        from_value(part("prompts")).expect("invariant: prompts are prompts");
    if with_added {
        prompts.push(from_value(part("added_prompt")).expect("invariant: it is a prompt"));
    }
    prompts
}

/// The listed resources with fixed URIs.
pub(crate) fn resources(profile: Profile) -> Vec<Resource> {
    let mut resources: Vec<Resource> =
        from_value(part("resources")).expect("invariant: resources are resources");
    if profile == Profile::SdkExample {
        resources.retain(|resource| resource.uri != WATCHED);
    }
    resources
}

/// All resource templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    from_value(part("templates")).expect("invariant: templates are templates")
}
