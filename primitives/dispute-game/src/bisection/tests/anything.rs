//! What a dishonest side does next: anything.

use super::super::*;
use crate::testsuite::dice::Dice;
use alloc::vec::Vec;
use sp_core::{Get, bounded::BoundedVec};

fn bytes<S: Get<u32>>(most: u32, dice: &mut Dice) -> BoundedVec<u8, S> {
    let bytes: Vec<u8> = (0..dice.below(most)).map(|_| dice.number() as u8).collect();
    bytes.try_into().unwrap_or_default()
}

/// Some move, or `faithful` or something like it.
pub fn anything(game: &Game, faithful: Option<Move>, dice: &mut Dice) -> Move {
    match dice.below(16) {
        0 => Move::Name(dice.below(256) as u8),
        1 => Move::Open(bytes(64, dice)),
        2 => Move::Post(
            (0..dice.below(17))
                .map(|_| dice.hash())
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
        ),
        3 => Move::Pick(dice.below(1100) as u16),
        4 => Move::Show(bytes(1025, dice)),
        5 => Move::Enter(Entry {
            length: None,
            steps: StepsOpening::new(&[dice.hash(), dice.hash()]),
        }),
        6 if dice.below(4) == 0 => Move::Concede,
        6 => Move::Ask(missing(dice)),
        7..=10 => faithful.map_or(Move::Concede, |played| alike(game, played, dice)),
        _ => faithful.unwrap_or(Move::Name(0)),
    }
}

fn missing(dice: &mut Dice) -> Missing {
    [Missing::Input, Missing::Output, Missing::Both][dice.below(3) as usize]
}

/// Almost what `played` is.
fn alike(game: &Game, played: Move, dice: &mut Dice) -> Move {
    match played {
        Move::Post(children) => {
            let mut children = children.into_inner();
            let place = dice.below(children.len() as u32) as usize;
            match dice.below(4) {
                0 => children.reverse(),
                1 => drop(children.remove(place)),
                2 => children.insert(place, dice.hash()),
                _ => children[place] = dice.hash(),
            }
            children.truncate(CHILDREN_MAX as usize);
            Move::Post(children.try_into().unwrap())
        }
        Move::Name(_) => match game.state() {
            State::Naming { children } => Move::Name(dice.below(children.len() as u32) as u8),
            _ => Move::Name(0),
        },
        Move::Enter(entry) => Move::Enter(other_entry(entry, dice)),
        Move::Show(bytes) => Move::Show(other_bytes(bytes, dice)),
        Move::Pick(_) => match game.state() {
            State::Picking { bytes } => Move::Pick(dice.below(bytes.len() as u32) as u16),
            _ => Move::Pick(0),
        },
        Move::Open(bytes) => Move::Open(other_bytes(bytes, dice)),
        Move::Concede => Move::Concede,
        Move::Ask(_) => Move::Ask(missing(dice)),
        Move::Supply(mut part) => {
            match dice.below(3) {
                0 => part.part ^= 1,
                1 => drop(part.bytes.pop()),
                _ => part.bytes[0] ^= 1,
            }
            Move::Supply(part)
        }
    }
}

fn other_bytes<S: Get<u32>>(bytes: BoundedVec<u8, S>, dice: &mut Dice) -> BoundedVec<u8, S> {
    let mut bytes = bytes.into_inner();
    let place = dice.below(bytes.len() as u32) as usize;
    match (dice.below(3), bytes.get_mut(place)) {
        (0, Some(byte)) => *byte ^= 1 << dice.below(8),
        (1, Some(_)) => drop(bytes.remove(place)),
        _ => bytes.push(0),
    }
    bytes.try_into().unwrap_or_default()
}

/// An entry that is not the right one.
pub fn other_entry(mut entry: Entry, dice: &mut Dice) -> Entry {
    match (dice.below(6), &mut entry.length, &mut entry.steps) {
        (0, Some(length), _) => length.segment ^= 1,
        (1, Some(length), _) => drop(length.bytes.pop()),
        (2, Some(length), _) => length.bytes[0] ^= 1,
        (3, length @ Some(_), _) => *length = None,
        (4, _, Some(steps)) => steps.root = dice.hash(),
        (_, _, steps @ Some(_)) => *steps = None,
        (_, _, steps) => *steps = StepsOpening::new(&[dice.hash()]),
    }
    entry
}
