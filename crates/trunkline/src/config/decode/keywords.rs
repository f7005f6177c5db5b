//! Macro for enums of keywords: decoding, diagnostics and schema from one definition.

/// Defines an enum of keywords, with all spellings of each. `unlisted` ones are accepted and never
/// suggested.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident, $what:literal {
            $($(#[$variant_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),* $(,)?
        }
        $(unlisted { $($(#[$odd_doc:meta])* $odd:ident = $odd_word:literal $(| $odd_alias:literal)*),* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$variant_doc])* $variant,)*
            $($($(#[$odd_doc])* $odd,)*)?
        }

        impl $name {
            /// The keyword in a configuration file.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    $($(Self::$odd => $odd_word,)*)?
                }
            }

            /// The keywords that messages suggest.
            const OFFERED: &'static [&'static str] = &[$($word),*];

            /// All spellings of the listed keywords.
            const WORDS: &'static [&'static str] = &[$($word, $($alias,)*)*];

            /// Parses a keyword; `None` if it is unknown.
            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word $(| $alias)* => Some(Self::$variant),)*
                    $($($odd_word $(| $odd_alias)* => Some(Self::$odd),)*)?
                    _ => None,
                }
            }
        }

        impl crate::config::decode::FromNode for $name {
            fn from_node(
                node: &crate::config::jsonc::Node,
                decoder: &mut crate::config::decode::Decoder<'_>,
            ) -> Option<Self> {
                let word = crate::config::decode::word(node, decoder)?;
                let meant = Self::from_word(word);
                if meant.is_none() {
                    decoder.unknown_word(node, $what, Self::OFFERED);
                }
                meant
            }

            fn schema(_: &mut crate::config::decode::Definitions) -> serde_json::Value {
                serde_json::json!({ "enum": Self::WORDS })
            }
        }
    };
}
pub(crate) use words;
