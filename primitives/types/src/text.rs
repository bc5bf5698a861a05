//! Text of bounded length.

use alloc::{string::String, vec::Vec};
use core::{fmt, ops::Deref};

use codec::{Decode, DecodeWithMemTracking, Encode, EncodeLike, Input, MaxEncodedLen, Output};
use scale_info::{Type, TypeInfo};
use sp_core::ConstU32;
use sp_runtime::BoundedVec;

/// UTF-8 of at most `MAX` bytes. Its SCALE is that of its bytes; in the metadata it is a `str`, so that
/// wallets and libraries show what people wrote. Bytes that are no text are refused where they are decoded:
/// no state and no block holds any.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const MAX: u32>(String);

/// Why something is not a text of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// It has more bytes than allowed.
    TooLong,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "it is not UTF-8",
            Self::TooLong => "it is too long",
        })
    }
}

impl core::error::Error for TextFault {}

impl<const MAX: u32> Text<MAX> {
    /// As much of a text as fits.
    pub fn cut(text: &str) -> Self {
        let max = usize::try_from(MAX).unwrap_or(usize::MAX).min(text.len());
        let end = (0..=max).rev().find(|end| text.is_char_boundary(*end));
        Self(text.get(..end.unwrap_or_default()).unwrap_or_default().into())
    }
}

impl<const MAX: u32> TryFrom<String> for Text<MAX> {
    type Error = TextFault;

    fn try_from(text: String) -> Result<Self, TextFault> {
        let fits = u32::try_from(text.len()).is_ok_and(|bytes| bytes <= MAX);
        fits.then_some(Self(text)).ok_or(TextFault::TooLong)
    }
}

impl<const MAX: u32> TryFrom<&str> for Text<MAX> {
    type Error = TextFault;

    fn try_from(text: &str) -> Result<Self, TextFault> {
        String::from(text).try_into()
    }
}

impl<const MAX: u32> TryFrom<Vec<u8>> for Text<MAX> {
    type Error = TextFault;

    fn try_from(bytes: Vec<u8>) -> Result<Self, TextFault> {
        let text = String::from_utf8(bytes).map_err(|_| TextFault::NotUtf8)?;
        text.try_into()
    }
}

impl<const MAX: u32> Deref for Text<MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MAX: u32> fmt::Debug for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const MAX: u32> fmt::Display for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<const MAX: u32> Encode for Text<MAX> {
    fn size_hint(&self) -> usize {
        self.0.size_hint()
    }

    fn encode_to<T: Output + ?Sized>(&self, to: &mut T) {
        self.0.encode_to(to);
    }
}

impl<const MAX: u32> EncodeLike for Text<MAX> {}

impl<const MAX: u32> Decode for Text<MAX> {
    fn decode<I: Input>(input: &mut I) -> Result<Self, codec::Error> {
        let bytes = BoundedVec::<u8, ConstU32<MAX>>::decode(input)?;
        let text = String::from_utf8(bytes.into_inner());
        text.map(Self).map_err(|_| "text that is not UTF-8".into())
    }
}

impl<const MAX: u32> DecodeWithMemTracking for Text<MAX> {}

impl<const MAX: u32> MaxEncodedLen for Text<MAX> {
    fn max_encoded_len() -> usize {
        BoundedVec::<u8, ConstU32<MAX>>::max_encoded_len()
    }
}

impl<const MAX: u32> TypeInfo for Text<MAX> {
    type Identity = str;

    fn type_info() -> Type {
        str::type_info()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scale_info::{MetaType, TypeDef, TypeDefPrimitive};

    use super::*;

    type Short = Text<8>;
    type Bytes = BoundedVec<u8, ConstU32<8>>;

    #[test]
    fn it_is_encoded_as_its_bytes_are() {
        for text in ["", "MiniLM", "änä"] {
            let bytes = Bytes::truncate_from(text.as_bytes().to_vec());
            let typed = Short::try_from(text).unwrap();
            assert_eq!(typed.encode(), bytes.encode());
            assert_eq!(Short::decode(&mut bytes.encode().as_slice()), Ok(typed));
        }
        assert_eq!(Short::max_encoded_len(), Bytes::max_encoded_len());
    }

    #[test]
    fn no_bytes_that_are_no_text_are_decoded_and_none_that_are_too_many() {
        let decoded = |bytes: &[u8]| Short::decode(&mut bytes.to_vec().encode().as_slice());
        assert!(
            decoded(&[b'M', 0xff])
                .unwrap_err()
                .to_string()
                .contains("not UTF-8")
        );
        assert!(decoded(b"123456789").is_err());
        assert_eq!(Short::try_from(vec![0xff]), Err(TextFault::NotUtf8));
        assert_eq!(Short::try_from("123456789"), Err(TextFault::TooLong));
    }

    #[test]
    fn what_does_not_fit_is_cut_between_characters() {
        assert_eq!(Short::cut("123456789").to_string(), "12345678");
        assert_eq!(Short::cut("xäääää").to_string(), "xäää");
        assert_eq!(Short::cut("").to_string(), "");
    }

    #[test]
    fn metadata_calls_it_a_str_whatever_its_bound() {
        assert_eq!(
            Short::type_info().type_def,
            TypeDef::Primitive(TypeDefPrimitive::Str)
        );
        assert_eq!(MetaType::new::<Short>(), MetaType::new::<Text<64>>());
    }
}
