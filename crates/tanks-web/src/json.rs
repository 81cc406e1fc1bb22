//! Reads the little JSON that a page or a server tells: a tenth of the code that a reader for everything takes, and the
//! page downloads it.

/// What was read. Objects keep their order; of two keys of the same name the first counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// It is not JSON.
    #[error("it is not JSON from byte {at} on")]
    Syntax {
        /// Where that begins.
        at: usize,
    },
    /// A key is missing, or is not what it should be.
    #[error("`{key}` is missing or is not {expected}")]
    Key {
        /// Which.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A key that means nothing, where that is a slip of the pen.
    #[error("there is a key that is not known; there are: {known}")]
    Unknown {
        /// Those that are.
        known: &'static str,
    },
}

impl Json {
    /// Deeper than anything of ours; without a limit a hostile text ends the stack.
    const MAX_DEPTH: u32 = 16;

    pub(crate) fn read(text: &str) -> Result<Self, JsonError> {
        let mut reader = Reader { text, at: 0 };
        let json = reader.value(Self::MAX_DEPTH);
        reader.space();
        json.filter(|_| reader.at == text.len()).ok_or(JsonError::Syntax { at: reader.at })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub(crate) fn pair(&self) -> Option<[f64; 2]> {
        match self.list()? {
            [one, other] => Some([one.number()?, other.number()?]),
            _ => None,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes `token`, if it is there, and the space before it.
    fn take(&mut self, token: &str) -> Option<()> {
        self.space();
        self.rest().starts_with(token).then(|| self.at += token.len())
    }

    fn value(&mut self, depth: u32) -> Option<Json> {
        let depth = depth.checked_sub(1)?;
        self.space();
        match self.rest().bytes().next()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => self.string().map(Json::Text),
            b'n' => self.take("null").map(|()| Json::Null),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            _ => self.number(),
        }
    }

    /// To the bit the nearest float.
    fn number(&mut self) -> Option<Json> {
        let rest = self.rest();
        let end = rest.find(|each: char| !matches!(each, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let digits = rest.get(..end.unwrap_or(rest.len()))?;
        let begins = digits.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let number = nearest_float(digits).filter(|number| begins && number.is_finite())?;
        self.at += digits.len();
        Some(Json::Number(number))
    }

    fn list(&mut self, depth: u32) -> Option<Json> {
        self.take("[")?;
        let mut list = vec![];
        while self.take("]").is_none() {
            if !list.is_empty() {
                self.take(",")?;
            }
            list.push(self.value(depth)?);
        }
        Some(Json::List(list))
    }

    fn object(&mut self, depth: u32) -> Option<Json> {
        self.take("{")?;
        let mut entries = vec![];
        while self.take("}").is_none() {
            if !entries.is_empty() {
                self.take(",")?;
            }
            self.space();
            let key = self.string()?;
            self.take(":")?;
            entries.push((key, self.value(depth)?));
        }
        Some(Json::Object(entries))
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut text = String::new();
        loop {
            let next = self.rest().chars().next()?;
            self.at += next.len_utf8();
            match next {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                control if control < ' ' => return None,
                other => text.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(match next {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let code = u32::from_str_radix(self.rest().get(..4)?, 16).ok()?;
                self.at += 4;
                // Halves of a pair are of no use to us: no name or address has them.
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            '"' | '\\' | '/' => next,
            _ => return None,
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn nearest_float(digits: &str) -> Option<f64> {
    digits.parse().ok()
}

/// The browser's own parser, NaN for other text: the standard library's brings a table of 10 kB that no compression shrinks.
#[cfg(target_arch = "wasm32")]
fn nearest_float(digits: &str) -> Option<f64> {
    Some(wasm_bindgen::JsValue::from_str(digits).unchecked_into_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\" 1}",
            "{a:1}",
            "1 2",
            "nul",
            "\"\\x\"",
            "+1",
            ".5",
            "1e999",
            "\"\n\"",
        ] {
            assert!(matches!(Json::read(bad), Err(JsonError::Syntax { .. })), "{bad:?}");
        }
        let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Json::read(&deep(16)).is_ok() && Json::read(&deep(17)).is_err());
    }

    #[test]
    fn keys_are_found_and_escapes_are_what_they_stand_for() {
        let json = Json::read(" { \"a\" : [ 1 , -2.5e1 ], \"b\\u0041\\n\": \"\\\"x\\/\\\\\" } ").unwrap();
        assert_eq!(json.get("a").unwrap().pair(), Some([1.0, -25.0]));
        assert_eq!(json.get("bA\n").unwrap().text(), Some("\"x/\\"));
        assert_eq!((json.get("c"), json.number(), json.get("a").unwrap().get("d")), (None, None, None));
    }

    fn same(ours: &Json, theirs: &serde_json::Value) -> bool {
        use serde_json::Value;
        match (ours, theirs) {
            (Json::Null, Value::Null) => true,
            (Json::Bool(one), Value::Bool(other)) => one == other,
            (Json::Number(one), Value::Number(other)) => {
                Some(one.to_bits()) == other.as_f64().map(f64::to_bits)
            }
            (Json::Text(one), Value::String(other)) => one == other,
            (Json::List(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (Json::Object(one), Value::Object(other)) => {
                one.len() == other.len()
                    && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
            }
            _ => false,
        }
    }

    fn any_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_another_library_writes_is_read_to_the_bit(value in any_value()) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert!(same(&Json::read(&text).unwrap(), &value), "{}", text);
        }

        #[test]
        fn nothing_is_too_strange_to_be_refused(text in "[\\[\\]{}:,\"\\\\0-9eEun. tfä-]{0,40}") {
            let _ = Json::read(&text);
        }
    }
}
