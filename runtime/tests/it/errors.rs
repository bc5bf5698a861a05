//! What errors say: wallets and `surety` show it to people.

use scale_info::{TypeDef, TypeInfo};
use surety_runtime::RuntimeError;

/// Sentences of a text, each with its end.
fn sentences(text: &str) -> usize {
    text.split_inclusive(". ")
        .filter(|sentence| sentence.trim_end().ends_with('.'))
        .count()
}

#[test]
fn every_error_of_our_pallets_says_what_is_the_matter_and_what_to_do() {
    let TypeDef::Variant(pallets) = RuntimeError::type_info().type_def else {
        panic!("errors are variants")
    };
    let (mut errors, mut terse) = (0, Vec::new());
    for pallet in pallets.variants {
        let Some(error) = pallet.fields.first().map(|field| field.ty.type_info()) else {
            continue;
        };
        let is_ours = error
            .path
            .segments
            .first()
            .is_some_and(|of| of.starts_with("surety_pallet_"));
        let TypeDef::Variant(variants) = error.type_def else {
            continue;
        };
        for variant in variants.variants.into_iter().filter(|_| is_ours) {
            errors += 1;
            let text = variant
                .docs
                .iter()
                .map(|line| line.trim())
                .collect::<Vec<_>>()
                .join(" ");
            // The one sentence says what is the matter, the next what to do.
            if sentences(&text) < 2 {
                terse.push(format!("{}.{}: {text:?}", pallet.name, variant.name));
            }
        }
    }
    assert!(terse.is_empty(), "{}", terse.join("\n"));
    // None is left out because it is not found.
    assert!(errors > 100, "{errors}");
}

#[test]
fn sentences_are_counted_by_their_ends() {
    assert_eq!(sentences("One. Two, of /ip4/1.2.3.4 and so on."), 2);
    assert_eq!(sentences("One that is long, for example of 0.5"), 0);
    assert_eq!(sentences("One."), 1);
}
