//! `cargo xtask eval-search`: measures the ranking of tools on labelled sets, against flat BM25.

mod metrics;
mod set;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use trunkline_search::flat::FlatIndex;
use trunkline_search::{Index, Query};

use crate::output::say;
use crate::suggestion;
use metrics::{DEPTHS, RECALL_AT_5, Random, Scores, bootstrap, mean, scores};
use set::{LabelledSet, read_all};

/// Number of ranked tools that the deepest measure looks at.
const DEPTH: usize = 10;

/// Seed of the choice of queries and of the bootstrap, unless one is given.
const SEED: u64 = 20_260_728;

const OPTIONS: &[&str] = &["--data", "--limit-queries", "--seed"];

/// Prints a table for the sets in a folder.
pub(crate) fn run(options: &[String]) -> Result<()> {
    let options = EvaluationOptions::parse(options)?;
    let mut sets = read_all(&options.data)?;
    say(&header());
    let mut means = Vec::new();
    for set in &mut sets {
        if let Some(limit) = options.limit {
            Random(options.seed).keep(&mut set.queries, limit);
        }
        means.push(evaluate(set, options.seed));
    }
    let (flat, ranked): (Vec<Scores>, Vec<Scores>) = means.into_iter().unzip();
    say(&line("mean", "flat", &mean(&flat)));
    say(&line("", "ranked", &mean(&ranked)));
    Ok(())
}

/// Options of the command.
#[derive(Debug, PartialEq, Eq)]
struct EvaluationOptions {
    data: PathBuf,
    limit: Option<usize>,
    seed: u64,
}

impl EvaluationOptions {
    fn parse(words: &[String]) -> Result<Self> {
        let (mut data, mut limit, mut seed) = (None, None, SEED);
        let mut words = words.iter();
        while let Some(option) = words.next() {
            if !OPTIONS.contains(&option.as_str()) {
                bail!(suggestion::unknown("option", option, OPTIONS));
            }
            let value = words.next().with_context(|| format!("`{option}` needs a value"))?;
            let number =
                || value.parse::<u64>().with_context(|| format!("`{option} {value}` is no number"));
            match option.as_str() {
                "--data" => data = Some(PathBuf::from(value)),
                "--limit-queries" => limit = Some(usize::try_from(number()?)?),
                _ => seed = number()?,
            }
        }
        let data = data.context("`cargo xtask eval-search` needs `--data <folder>`")?;
        Ok(Self { data, limit, seed })
    }
}

/// Prints the lines of one set; gives the means of the baseline and of the ranking.
fn evaluate(set: &LabelledSet, seed: u64) -> (Scores, Scores) {
    let flat = FlatIndex::build(set.documents.iter().cloned());
    let index = Index::build(set.documents.iter().cloned());
    let mut baseline = Vec::new();
    let mut ranked = Vec::new();
    for query in &set.queries {
        baseline.push(scores(&flat.search(&query.text, DEPTH), &query.relevant));
        let hits = index.search(&Query::new(&query.text).with_limit(DEPTH));
        let keys: Vec<&str> = hits.iter().map(|hit| hit.document.key()).collect();
        ranked.push(scores(&keys, &query.relevant));
    }
    say(&line(&set.name, "flat", &mean(&baseline)));
    let pairs = ranked.iter().zip(&baseline);
    let differences: Vec<f64> =
        pairs.map(|(ranked, flat)| ranked[RECALL_AT_5] - flat[RECALL_AT_5]).collect();
    let bootstrap = bootstrap(&differences, seed);
    let (low, high) = (100.0 * bootstrap.low, 100.0 * bootstrap.high);
    let interval = format!("R@5 {low:+.1} to {high:+.1}, p {:.3}", bootstrap.p);
    let sizes = format!("{} tools, {} queries", set.documents.len(), set.queries.len());
    say(&format!("{}  {interval}; {sizes}", line("", "ranked", &mean(&ranked))));
    (mean(&baseline), mean(&ranked))
}

fn header() -> String {
    let depths = DEPTHS.map(|depth| format!("{:>6}", format!("R@{depth}"))).concat();
    format!("{:<18}{:<8}{depths} nDCG@10  ranked against flat, 95 %", "set", "")
}

fn line(set: &str, ranking: &str, scores: &Scores) -> String {
    let numbers = scores.map(|score| format!("{:>6.1}", 100.0 * score)).concat();
    format!("{set:<18}{ranking:<8}{numbers}  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<EvaluationOptions> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        EvaluationOptions::parse(&words)
    }

    #[test]
    fn options_are_read() {
        let options = parse(&["--data", "d", "--limit-queries", "400", "--seed", "7"]).unwrap();
        let expected = EvaluationOptions { data: "d".into(), limit: Some(400), seed: 7 };
        assert_eq!(options, expected);
    }

    #[test]
    fn wrong_options_say_what_is_missing() {
        let message = |words: &[&str]| parse(words).unwrap_err().to_string();
        assert!(message(&[]).contains("needs `--data <folder>`"));
        assert!(message(&["--data"]).contains("`--data` needs a value"));
        assert!(message(&["--dat", "x"]).contains("did you mean `--data`?"));
        assert!(message(&["--seed", "x"]).contains("is no number"));
    }
}
