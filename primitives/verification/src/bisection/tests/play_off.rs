use super::*;

proptest! {
    #[test]
    fn a_right_claim_wins_every_play_off(claims in 1u32..=CLAIMS_MAX, right in any::<u32>(), seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let right = right % claims;
        let mut play_off = PlayOff::new(claims).unwrap();
        let (mut games, mut rounds) = (0, 0);
        while play_off.champion().is_none() {
            rounds += 1;
            let mut round = play_off.pairings().to_vec();
            if dice.below(2) == 0 {
                round.reverse();
            }
            for game in round {
                let winner = match game {
                    _ if game.defender == right => Side::Defender,
                    _ if game.challenger == right => Side::Challenger,
                    _ if dice.below(2) == 0 => Side::Defender,
                    _ => Side::Challenger,
                };
                play_off.report(game.defender, winner).unwrap();
                games += 1;
            }
        }
        prop_assert_eq!(play_off.champion(), Some(right));
        prop_assert_eq!(games, claims - 1);
        prop_assert_eq!(rounds, claims.next_power_of_two().ilog2());
    }
}

#[test]
fn a_play_off_takes_each_result_once() {
    assert_eq!(PlayOff::new(0), Err(PlayOffError::Claims));
    assert_eq!(PlayOff::new(CLAIMS_MAX + 1), Err(PlayOffError::Claims));
    let mut play_off = PlayOff::new(4).unwrap();
    assert_eq!(play_off.report(1, Side::Defender), Err(PlayOffError::NoSuchGame));
    play_off.report(0, Side::Challenger).unwrap();
    assert_eq!(play_off.report(0, Side::Defender), Err(PlayOffError::NoSuchGame));
    play_off.report(2, Side::Defender).unwrap();
    let last = Pairing {
        defender: 1,
        challenger: 2,
        winner: None,
    };
    assert_eq!(play_off.pairings(), [last]);
}
