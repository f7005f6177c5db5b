//! Secrets as text in stored credentials, for serde.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

use crate::config::Secret;

pub(super) fn serialize<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(Secret::new))
}
