use std::{collections::BTreeSet, mem::discriminant};

use sp_core::{H256, crypto::AccountId32};

use crate::Call;

#[test]
fn there_is_one_sample_of_each_call_and_no_two_calls_share_a_name() {
    let samples = crate::sample::calls();
    let names: BTreeSet<_> = samples
        .iter()
        .map(|call| (call.name().pallet, call.name().call))
        .collect();
    assert_eq!(names.len(), samples.len());
    let kind = |call: &Call| match call {
        Call::Stake(inner) => (discriminant(call), Some(discriminant(inner))),
        _ => (discriminant(call), None),
    };
    for (at, call) in samples.iter().enumerate() {
        assert!(samples[..at].iter().all(|other| kind(other) != kind(call)));
    }
}

#[test]
fn arguments_are_encoded_one_after_the_other() {
    let call = Call::Commit {
        task: 1,
        commitment: H256([7; 32]),
    };
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0];
    expected.extend([7; 32]);
    assert_eq!(call.encode_arguments(), expected);

    let call = Call::Transfer {
        to: AccountId32::new([9; 32]),
        amount: 1,
    };
    let mut expected = vec![0];
    expected.extend([9; 32]);
    expected.push(4);
    assert_eq!(call.encode_arguments(), expected);
}

#[test]
fn batches_of_other_calls_differ_though_their_arguments_are_the_same() {
    let amount = 1;
    let [one, other] = [Call::Unbond { amount }, Call::Rebond { amount }].map(|call| Call::Batch(vec![call]));
    assert_ne!(one.encode_arguments(), other.encode_arguments());
    assert_eq!(one.encode_arguments(), one.clone().encode_arguments());
}
