//! `trunkline tokens`: what the definitions of tools cost a model, directly and in meta mode.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use trunkline::catalog::{Entry, ItemKind};
use trunkline::message::Raw;
use trunkline::meta::{ItemTool, MetaTool};
use trunkline::view::View;

use crate::arguments::{Format, TokensArguments};
use crate::environment::ProcessEnv;
use crate::host::caller::CallerOptions;
use crate::host::command_host::{ProblemDetail, with_host};
use crate::host::listed_tools::ListedTools;
use crate::host::tokenizer::Tokenizer;
use crate::output::exit::Outcome;
use crate::output::report;
use crate::output::terminal::Terminal;
use crate::output::text_layout::TextLayout;
use crate::settings::Settings;

/// The tokens of one tool.
struct ToolCost {
    name: String,
    tokens: usize,
}

/// The tokens of a view's tools.
struct Costs {
    servers: BTreeMap<String, Vec<ToolCost>>,
    /// The tools for resources and prompts, which each mode has if they are switched on.
    items: Vec<ToolCost>,
    meta: usize,
    /// What the model receives as configured.
    configured: usize,
}

pub(crate) fn run(
    arguments: &TokensArguments,
    settings: &Settings,
    environment: &Arc<ProcessEnv>,
    terminal: &mut Terminal,
) -> Result<Outcome> {
    let who = CallerOptions::read(&arguments.who, settings, environment)?;
    let problems = ProblemDetail::Shown;
    with_host(problems, settings, environment, terminal, async |hosted, terminal| {
        let listed =
            ListedTools::of(&who, (None, &arguments.lists), settings, hosted, terminal).await?;
        let view = &listed.view;
        let costs = Costs::of(&Tokenizer::new()?, view, |entry| {
            view.definition(entry, hosted.host.description_style())
        });
        match settings.format {
            Format::Text => terminal.print(&costs.as_text(arguments.tools, terminal.layout()))?,
            Format::Json | Format::Raw => {
                let mut json = costs.as_json();
                listed.add_to(&mut json);
                terminal.print(&report::document(&json, settings.format))?;
            }
        }
        if !listed.is_complete() {
            terminal.tell("servers whose tools are not known are not counted\n");
        }
        Ok(listed.report(terminal))
    })
}

impl Costs {
    fn of(tokenizer: &Tokenizer, view: &View, define: impl Fn(&Entry) -> Raw) -> Self {
        let surface = view.surface();
        let item = |tool: ItemTool| ToolCost {
            name: tool.name().to_owned(),
            tokens: tokenizer.count(tool.definition().text()),
        };
        let items: Vec<_> = surface.item_tools().map(item).collect();
        let of_items = sum(&items);
        let of_meta = |tool: &MetaTool| tokenizer.count(tool.definition().text());
        let meta = MetaTool::ALL.iter().map(of_meta).sum::<usize>() + of_items;
        let mut configured = if surface.has_meta_tools() { meta } else { of_items };
        let mut servers: BTreeMap<String, Vec<ToolCost>> = BTreeMap::new();
        for entry in view.entries(ItemKind::Tool) {
            let tokens = tokenizer.count(define(entry).text());
            configured += if surface.is_direct(entry) { tokens } else { 0 };
            let tool = ToolCost { name: entry.exposed().to_owned(), tokens };
            servers.entry(entry.server().name.to_string()).or_default().push(tool);
        }
        for tools in servers.values_mut() {
            tools.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
        }
        Self { servers, items, meta, configured }
    }

    fn direct(&self) -> usize {
        self.servers.values().map(|tools| sum(tools)).sum::<usize>() + sum(&self.items)
    }

    fn as_text(&self, shows_tools: bool, layout: TextLayout) -> String {
        let mut rows = vec![["server".to_owned(), "tools".to_owned(), "tokens".to_owned()]];
        for (server, tools) in &self.servers {
            push_rows(&mut rows, server, tools, shows_tools);
        }
        if !self.items.is_empty() {
            push_rows(&mut rows, "(resources and prompts)", &self.items, shows_tools);
        }
        let widths = [0, 1, 2].map(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        });
        let mut text = String::new();
        for [name, tools, tokens] in &rows {
            let [first, second, third] = widths;
            let _ = writeln!(text, "{name:first$}  {tools:>second$}  {tokens:>third$}");
        }
        let mut text = report::with_head(&text, layout);
        let direct = self.direct();
        let _ = writeln!(text, "\ndirect mode  {direct} tokens in every conversation");
        let _ = writeln!(text, "meta mode    {} tokens, and about 200 per search", self.meta);
        let _ = writeln!(text, "configured   {} tokens", self.configured);
        text
    }

    fn as_json(&self) -> Value {
        let items: BTreeMap<_, _> = self.items.iter().map(|it| (&it.name, it.tokens)).collect();
        let servers: BTreeMap<_, _> = self
            .servers
            .iter()
            .map(|(server, tools)| {
                let tools: BTreeMap<_, _> = tools.iter().map(|it| (&it.name, it.tokens)).collect();
                (server, tools)
            })
            .collect();
        json!({
            "vocabulary": "o200k_base",
            "servers": servers,
            "resourcesAndPrompts": items,
            "direct": self.direct(),
            "meta": self.meta,
            "configured": self.configured,
        })
    }
}

/// Adds the row of a server, and those of its tools if they are shown.
fn push_rows(rows: &mut Vec<[String; 3]>, name: &str, tools: &[ToolCost], shows_tools: bool) {
    rows.push([name.to_owned(), tools.len().to_string(), sum(tools).to_string()]);
    for tool in tools.iter().filter(|_| shows_tools) {
        rows.push([format!("  {}", tool.name), String::new(), tool.tokens.to_string()]);
    }
}

fn sum(tools: &[ToolCost]) -> usize {
    tools.iter().map(|tool| tool.tokens).sum()
}
