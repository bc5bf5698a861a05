use super::*;
use proptest::prelude::*;

fn lambda(percent: u32) -> FixedU128 {
    FixedU128::from_rational(percent.into(), 100)
}

/// What one audit is paid in the mean, as a multiple of what it costs, by a provider that just covers its
/// work and its audits.
fn pay_over_cost(cost: f64, percent: u32) -> f64 {
    let share = AuditPay::default().share(Perquintill::from_float(cost), lambda(percent));
    let paid = paid(
        Perquintill::from_parts(u64::from(share.deconstruct()) * QUINTILLIONTHS),
        lambda(percent),
    )
    .deconstruct() as f64
        / 1e18;
    // Of a price of one, that much is left for the work, and the audits cost.
    paid / (f64::from(percent) / 100.0) / ((1.0 - paid) * cost)
}

#[test]
fn a_price_that_covers_work_and_audits_pays_each_audit_a_quarter_more_than_its_cost() {
    for (cost, percent) in [
        (1.0, 100),
        (1.0, 300),
        (0.1, 15),
        (0.1, 100),
        (0.001, 300),
        (0.3, 15),
    ] {
        let ratio = pay_over_cost(cost, percent);
        assert!((1.2499..1.26).contains(&ratio), "{cost} {percent}: {ratio}");
    }
    // Nearly all that is earned, whenever it is audited: seldom enough to be left with nothing.
    let ratio = pay_over_cost(1.0, 15);
    assert!((1.07..1.09).contains(&ratio), "{ratio}");
}

#[test]
fn an_audit_of_a_long_prompt_costs_nearly_what_its_generation_does() {
    let pass = Permill::from_percent(25);
    let part = |prompt, units| generation_audit(pass, prompt, units).deconstruct() as f64 / 1e18;
    // 500 passes' worth, beside 475 and 100 tokens one after the other.
    for (prompt, units, expected) in [
        (0, 2_000, 0.25),
        (1_900, 2_000, 500.0 / 575.0),
        (1_000, 2_000, 500.0 / 1_250.0),
        (2_000, 2_000, 1.0),
        (9, 0, 1.0),
        (u32::MAX - 1, u32::MAX, 1.0),
    ] {
        let found = part(prompt, units);
        assert!((found - expected).abs() < 1e-8, "{prompt} of {units}: {found}");
    }
    assert!(generation_audit(Permill::zero(), 5, 5).is_zero());
    assert_eq!(generation_audit(Permill::one(), 5, 9), Perquintill::one());
}

#[test]
fn few_audits_get_their_part_and_many_share_what_is_earned() {
    let share = Perbill::from_percent(40);
    assert_eq!(AuditPay::of(share, 1_000u128, 1), 400);
    assert_eq!(AuditPay::of(share, 1_000u128, 2), 400);
    assert_eq!(AuditPay::of(share, 1_000u128, 3), 333);
    assert_eq!(AuditPay::of(share, 1_000u128, 24), 41);
    assert_eq!(AuditPay::of(share, 1_000u128, 0), 0);
}

proptest! {
    #[test]
    fn audits_never_cost_more_than_their_provider_earns(
        earned in any::<u128>(), audits in 0..100u32, share in 0..=1_000_000_000u32,
    ) {
        let all = AuditPay::of(Perbill::from_parts(share), earned, audits).checked_mul(audits.into());
        prop_assert!(all.is_some_and(|all| all <= earned));
    }

    #[test]
    fn a_longer_prompt_never_makes_an_audit_cheaper(
        units in 1..100_000u32, prompt in 0..100_000u32, more in 0..1_000u32, percent in 1..=100u32,
    ) {
        let pass = Permill::from_percent(percent);
        let part = |prompt| generation_audit(pass, prompt, units);
        let least = Perquintill::from_percent(percent.into());
        prop_assert!(part(prompt + more) >= part(prompt) && part(prompt) >= least);
    }

    #[test]
    fn dearer_audits_are_paid_more(cost in 1..1_000_000u32, more in 0..1_000_000u32, percent in 1..2_400u32) {
        let share = |cost: u32| AuditPay::default().share(Perquintill::from_rational(u64::from(cost), 2_000_000), lambda(percent));
        prop_assert!(share(cost + more) >= share(cost));
    }

    #[test]
    fn an_audit_is_paid_above_its_cost_by_whoever_is_not_left_with_a_loss(
        cost in 1..=1_000u32, percent in 15..300u32,
    ) {
        prop_assert!(pay_over_cost(f64::from(cost) / 1_000.0, percent) > 1.07);
    }
}
