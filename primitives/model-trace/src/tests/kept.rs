//! What is unfolded for one game is there for the next.

use super::small::works;
use crate::{layout::Part, player::Unfolded};
use surety_dispute_game::bisection::{Shape, Trace};

#[test]
fn leaves_are_kept_as_long_as_there_is_room_and_are_the_same() {
    let mut folded = 0;
    for work in works() {
        let computed = |leaf: &u32| matches!(work.layout.part(*leaf), Some(Part::Rows { .. }));
        let leaves: Vec<u32> = (0..work.layout.leaves()).filter(computed).collect();
        let fresh = |leaf| work.player().steps(leaf).unwrap();
        let mut first = work.player();
        let one = first.unfold(leaves[0]).unwrap().memory();
        assert!(one > 0);
        for (room, kept) in [(0, 0), (usize::MAX, leaves.len() - 1)] {
            let mut player = work.player().keeping(room);
            for _ in 0..2 {
                for leaf in &leaves {
                    assert_eq!(player.steps(*leaf).unwrap(), fresh(*leaf));
                }
            }
            assert_eq!(player.kept.len(), kept);
        }
        let mut player = work.player().keeping(one);
        for leaf in &leaves {
            player.unfold(*leaf).unwrap();
            assert!(player.kept.iter().map(Unfolded::memory).sum::<usize>() <= one);
            assert!(player.kept.iter().map(Unfolded::of_digests).sum::<usize>() <= one);
        }
        // Of those for which there is no room digests are there still: nothing is unfolded for these.
        let last = player.unfolded.as_ref().unwrap().leaf;
        let of_digests = player.kept.iter().filter(|kept| kept.steps.is_empty());
        for leaf in of_digests.map(|kept| kept.leaf).collect::<Vec<_>>() {
            assert_eq!(player.steps(leaf).unwrap(), fresh(leaf));
            assert_eq!(player.unfolded.as_ref().unwrap().leaf, last);
            assert!(player.unfold(leaf).unwrap().memory() > 0);
            player.unfold(last).unwrap();
            folded += 1;
        }
    }
    assert!(folded > 0);
}
