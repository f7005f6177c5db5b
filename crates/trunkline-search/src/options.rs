//! Parameters of the ranking, with the values that the evaluation chose.

use crate::document::Field;

/// Parameters of the ranking.
///
/// Weights, length effects and saturation are a published recipe, except for one; typical lengths
/// are estimates. `cargo xtask eval-search` showed that recall hardly depends on any of them: most
/// changes by a factor of two move its mean by less than 0.3 points. The exception is the weight of
/// descriptions of parameters, 0.6 instead of 0.3: 80.1 instead of 79.9. Chosen among 0.1 to 1.5 with
/// each set left out in turn, it is 0.4 points better than the recipe on the sets left out (80.4
/// against 80.0 with at most 500 queries of each set).
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// One entry per field, in the order of [`Field::ALL`].
    pub fields: [FieldOptions; Field::COUNT],
    /// Weighted frequency at which a term has half of its largest effect.
    pub saturation: f32,
    /// Share of the best score of a server that every tool of that server with a score gets.
    pub server_affinity: f32,
}

/// Parameters of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldOptions {
    /// Effect of one occurrence of a term.
    pub weight: f32,
    /// Effect of the length of the field: 0 for none, 1 if twice the length halves the weight.
    pub length_effect: f32,
    /// Number of terms of a typical field. A constant instead of the average of the catalog, so
    /// that a score does not depend on other tools, and is computed when a tool is indexed.
    pub typical_length: f32,
}

const fn field(weight: f32, length_effect: f32, typical_length: f32) -> FieldOptions {
    FieldOptions { weight, length_effect, typical_length }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fields: [
                field(3.0, 0.5, 2.5),
                field(3.0, 0.5, 2.5),
                field(1.5, 0.2, 2.0),
                field(1.0, 0.6, 12.0),
                field(0.5, 0.3, 5.0),
                field(0.6, 0.5, 20.0),
                field(0.15, 0.75, 15.0),
            ],
            saturation: 1.4,
            server_affinity: 0.1,
        }
    }
}

impl FieldOptions {
    /// Weight of one occurrence in a field with this number of terms.
    pub(crate) fn weight_at(&self, length: u32) -> f32 {
        let relative = length as f32 / self.typical_length;
        self.weight / (1.0 - self.length_effect + self.length_effect * relative)
    }
}

impl Options {
    /// Weight of one occurrence in each field of a document with these numbers of terms.
    pub(crate) fn field_weights(&self, lengths: &[u32; Field::COUNT]) -> [f32; Field::COUNT] {
        std::array::from_fn(|field| self.fields[field].weight_at(lengths[field]))
    }

    /// Effect of a term with these numbers of occurrences, between 0 and 1.
    pub(crate) fn saturate(
        &self,
        counts: &[u32; Field::COUNT],
        weights: &[f32; Field::COUNT],
    ) -> f32 {
        let frequency: f32 = counts.iter().zip(weights).map(|(count, it)| *count as f32 * it).sum();
        frequency / (frequency + self.saturation)
    }
}
