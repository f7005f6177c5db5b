//! Recall and nDCG of a ranking, and a paired bootstrap between two.

use std::collections::HashMap;

/// Depths at which recall is measured.
pub(crate) const DEPTHS: [usize; 4] = [1, 3, 5, 10];

/// Position of the recall at 5, the aim, in [`Scores`].
pub(crate) const RECALL_AT_5: usize = 2;

/// Number of resamples: enough for two digits of a p-value.
const RESAMPLES: usize = 2_000;

/// Recall at each of [`DEPTHS`], then nDCG at 10, between 0 and 1.
pub(crate) type Scores = [f64; DEPTHS.len() + 1];

/// The scores of one ranking.
pub(crate) fn scores(ranked: &[&str], relevant: &HashMap<String, f64>) -> Scores {
    let mut scores = [0.0; DEPTHS.len() + 1];
    for (score, depth) in scores.iter_mut().zip(DEPTHS) {
        let found = ranked.iter().take(depth).filter(|key| relevant.contains_key(**key)).count();
        *score = found as f64 / relevant.len().max(1) as f64;
    }
    scores[DEPTHS.len()] = gain_ratio(ranked, relevant);
    scores
}

fn gain_ratio(ranked: &[&str], relevant: &HashMap<String, f64>) -> f64 {
    let gain = |grades: &mut dyn Iterator<Item = f64>| -> f64 {
        let discount = |at: usize| ((at + 2) as f64).log2();
        grades.take(10).enumerate().map(|(at, grade)| (grade.exp2() - 1.0) / discount(at)).sum()
    };
    let mut ideal: Vec<f64> = relevant.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let grade = |key: &&str| relevant.get(*key).copied().unwrap_or(0.0);
    let best = gain(&mut ideal.into_iter());
    if best > 0.0 { gain(&mut ranked.iter().map(grade)) / best } else { 0.0 }
}

/// The mean of each score.
pub(crate) fn mean(all: &[Scores]) -> Scores {
    let mut sums = [0.0; DEPTHS.len() + 1];
    for scores in all {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += score;
        }
    }
    sums.map(|sum| sum / all.len().max(1) as f64)
}

/// The 95 % interval of a mean difference, and the share of resamples in which it is not above 0.
pub(crate) struct Bootstrap {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) p: f64,
}

/// Resamples the differences of the queries with replacement.
pub(crate) fn bootstrap(differences: &[f64], seed: u64) -> Bootstrap {
    let mut random = Random(seed);
    let count = differences.len().max(1);
    let mut resample = || -> f64 {
        let draw = |_| differences.get(random.below(count)).copied().unwrap_or(0.0);
        (0..count).map(draw).sum::<f64>() / count as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    means.sort_by(f64::total_cmp);
    let not_above = means.iter().filter(|mean| **mean <= 0.0).count();
    Bootstrap {
        low: means[RESAMPLES / 40],
        high: means[RESAMPLES - 1 - RESAMPLES / 40],
        p: not_above as f64 / RESAMPLES as f64,
    }
}

/// A small generator of random numbers (SplitMix64), the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit that is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Moves a random choice to the front, and drops the rest.
    pub(crate) fn keep<T>(&mut self, list: &mut Vec<T>, count: usize) {
        for at in 0..count.min(list.len()) {
            let other = at + self.below(list.len() - at);
            list.swap(at, other);
        }
        list.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relevant(keys: &[(&str, f64)]) -> HashMap<String, f64> {
        keys.iter().map(|(key, grade)| ((*key).to_owned(), *grade)).collect()
    }

    #[test]
    fn recall_is_the_share_of_relevant_tools() {
        let scores = scores(&["x", "a", "y", "z", "b"], &relevant(&[("a", 1.0), ("b", 1.0)]));
        assert_eq!(scores[..4], [0.0, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn gain_is_largest_in_the_order_of_the_grades() {
        let relevant = relevant(&[("a", 2.0), ("b", 1.0)]);
        assert!((scores(&["a", "b"], &relevant)[4] - 1.0).abs() < 1e-9);
        let swapped = scores(&["b", "a"], &relevant)[4];
        assert!(swapped > 0.5 && swapped < 0.9, "{swapped}");
        assert_eq!(scores(&[], &relevant)[4], 0.0);
    }

    #[test]
    fn a_clear_difference_is_significant_and_none_is_not() {
        let clear = bootstrap(&[0.5, 1.0, 0.5, 0.0, 1.0, 0.5], 7);
        assert!(clear.low > 0.0 && clear.p < 0.05, "{} {}", clear.low, clear.p);
        let none = bootstrap(&[1.0, -1.0, 1.0, -1.0], 7);
        assert!(none.low < 0.0 && none.high > 0.0 && none.p > 0.2, "{}", none.p);
    }

    #[test]
    fn a_choice_is_the_same_for_the_same_seed() {
        let choose = |seed| {
            let mut list: Vec<u32> = (0..100).collect();
            Random(seed).keep(&mut list, 10);
            list
        };
        assert_eq!(choose(1), choose(1));
        assert_ne!(choose(1), choose(2));
        assert_eq!(choose(1).len(), 10);
    }
}
