//! A trace whose cells are each computed from the one before, its players and its referee.

use super::super::nodes::{parent, Span};
use super::super::*;
use alloc::{collections::BTreeMap, vec::Vec};
use codec::{Decode, Encode};
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

/// Numbers that look random, from a seed: splitmix64.
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound.max(1))) as u32
    }

    pub fn hash(&mut self) -> H256 {
        H256(blake2_256(&self.next().encode()))
    }
}

/// What is computed at `path` from the cell before.
pub fn compute(before: H256, path: &[u32]) -> H256 {
    H256(blake2_256(&(before, path).encode()))
}

/// Leaves of every tree, by the path to it. Both the shape and one side's view of the work.
#[derive(Clone)]
pub struct Trace {
    levels: Vec<u32>,
    trees: BTreeMap<Vec<u32>, Vec<H256>>,
}

impl Shape for Trace {
    fn levels(&self) -> &[u32] {
        &self.levels
    }

    fn leaves(&self, path: &[u32]) -> u32 {
        self.trees[path].len() as u32
    }
}

impl Trace {
    /// Rightly computed, with one to the level's most leaves in each tree.
    pub fn new(levels: &[u32], dice: &mut Dice) -> Self {
        let mut trace = Self {
            levels: levels.to_vec(),
            trees: BTreeMap::new(),
        };
        trace.grow(Vec::new(), dice);
        trace.compute_from(0, H256::zero());
        trace
    }

    fn grow(&mut self, path: Vec<u32>, dice: &mut Dice) {
        let Some(most) = self.levels.get(path.len()).copied() else {
            return;
        };
        // Often as many as possible.
        let leaves = if dice.below(3) == 0 {
            most
        } else {
            1 + dice.below(most)
        };
        for leaf in 0..leaves {
            let mut path = path.clone();
            path.push(leaf);
            self.grow(path, dice);
        }
        self.trees.insert(path, vec![H256::zero(); leaves as usize]);
    }

    /// Paths of all cells, in the order in which they are computed.
    pub fn cells(&self) -> Vec<Vec<u32>> {
        let lowest = self
            .trees
            .iter()
            .filter(|(path, _)| path.len() + 1 == self.levels.len());
        lowest
            .flat_map(|(path, leaves)| {
                (0..leaves.len() as u32).map(move |leaf| [path.as_slice(), &[leaf]].concat())
            })
            .collect()
    }

    pub fn cell(&self, path: &[u32]) -> H256 {
        let (leaf, tree) = path.split_last().unwrap();
        self.trees[tree][*leaf as usize]
    }

    fn set(&mut self, path: &[u32], value: H256) {
        let (leaf, tree) = path.split_last().unwrap();
        self.trees.get_mut(tree).unwrap()[*leaf as usize] = value;
    }

    /// The digests of all trees, the longest paths first.
    fn seal(&mut self) {
        let mut paths: Vec<_> = self
            .trees
            .keys()
            .filter(|path| !path.is_empty())
            .cloned()
            .collect();
        paths.sort_by_key(|path| core::cmp::Reverse(path.len()));
        for path in paths {
            let root = crate::merkle_root(self.trees[&path].iter().copied());
            self.set(&path, root);
        }
    }

    fn compute_from(&mut self, first: usize, mut before: H256) {
        for path in self.cells().into_iter().skip(first) {
            before = compute(before, &path);
            self.set(&path, before);
        }
        self.seal();
    }

    /// With `mask` laid over one cell. The cells after it are as before, or computed from the altered one.
    pub fn altered(&self, cell: usize, mask: H256, goes_on: bool) -> Self {
        let mut other = self.clone();
        let path = self.cells().swap_remove(cell);
        let value = self.cell(&path) ^ mask;
        other.set(&path, value);
        match goes_on {
            true => other.compute_from(cell + 1, value),
            false => other.seal(),
        }
        other
    }

    pub fn root(&self) -> H256 {
        crate::merkle_root(self.trees[&Vec::new()].iter().copied())
    }

    /// This side's children of the node in dispute.
    pub fn children(&self, game: &Game) -> Vec<H256> {
        let leaves = game.leaves_in_dispute();
        children(&self.trees[game.path()][leaves.start as usize..leaves.end as usize])
    }

    /// What a defender with this trace does.
    pub fn defend(&self, game: &Game) -> Move {
        match game.state() {
            State::Posting => Move::Post(self.children(game).try_into().unwrap()),
            _ => Move::Open(
                self.opening(game.path(), game.agreed())
                    .encode()
                    .try_into()
                    .unwrap(),
            ),
        }
    }

    /// What a challenger with this trace does.
    pub fn challenge(&self, game: &Game) -> Move {
        let State::Naming { children } = game.state() else {
            panic!("not the challenger's turn")
        };
        first_difference(&self.children(game), children).map_or(Move::Concede, Move::Name)
    }

    /// The cell before `path`.
    fn before(&self, path: &[u32]) -> Option<Vec<u32>> {
        let cells = self.cells();
        let place = cells.iter().position(|cell| cell == path)?;
        cells.get(place.checked_sub(1)?).cloned()
    }

    /// Proves the cell before `path` from the agreed peaks.
    fn opening(&self, path: &[u32], agreed: &[Peak]) -> Option<Opening> {
        let before = self.before(path)?;
        let peak = agreed.iter().find(|peak| covers(peak, path, &before))?;
        let level = peak.level as usize;
        let tree = &self.trees[&before[..level]];
        let mut nodes: Vec<H256> = tree[peak.first as usize..][..peak.leaves as usize]
            .iter()
            .map(crate::merkle::leaf_hash)
            .collect();
        let mut place = (before[level] - peak.first) as usize;
        let mut siblings = Vec::new();
        while nodes.len() > 1 {
            siblings.push(nodes[place ^ 1]);
            nodes = nodes
                .chunks(2)
                .map(|pair| crate::merkle::node_hash(&pair[0], &pair[1]))
                .collect();
            place /= 2;
        }
        Some(Opening {
            siblings,
            leaf: tree[before[level] as usize],
            trees: (level + 1..before.len())
                .map(|depth| self.trees[&before[..depth]].clone())
                .collect(),
        })
    }
}

/// Whether `peak`, agreed on the way to `path`, is above `cell`.
pub fn covers(peak: &Peak, path: &[u32], cell: &[u32]) -> bool {
    let level = peak.level as usize;
    path[..level] == cell[..level] && (peak.first..peak.first + peak.leaves).contains(&cell[level])
}

/// A cell's input with its proof: up to a peak in the peak's tree, and the whole trees below.
#[derive(Encode, Decode)]
struct Opening {
    siblings: Vec<H256>,
    leaf: H256,
    trees: Vec<Vec<H256>>,
}

impl Opening {
    /// The value of `cell`, if this proves one.
    fn value(&self, cell: &[u32], peak: &Peak) -> Option<H256> {
        let level = peak.level as usize;
        if !peak.has_leaf(cell[level], &self.leaf, &self.siblings) {
            return None;
        }
        let mut value = self.leaf;
        for (depth, index) in cell.iter().enumerate().skip(level + 1) {
            let tree = self.trees.get(depth - level - 1)?;
            if crate::merkle_root(tree.iter().copied()) != value {
                return None;
            }
            value = *tree.get(*index as usize)?;
        }
        Some(value)
    }
}

/// Computes cells again from what is agreed. Of its trace it uses the shape alone.
pub struct Judge<'a>(pub &'a Trace);

impl Referee for Judge<'_> {
    fn judge(&self, cell: &Cell, agreed: &[Peak], mut opening: &[u8]) -> Judgement {
        let Ok(opening) = Option::<Opening>::decode(&mut opening) else {
            return Judgement::Unproven;
        };
        let input = match self.0.before(&cell.path) {
            None => Some(H256::zero()),
            Some(before) => opening.and_then(|opening| {
                let peak = agreed.iter().find(|peak| covers(peak, &cell.path, &before))?;
                opening.value(&before, peak)
            }),
        };
        match input {
            None => Judgement::Unproven,
            Some(input) if compute(input, &cell.path) == cell.digest => Judgement::Holds,
            Some(_) => Judgement::Refuted,
        }
    }
}

/// A defender whose tree is no tree: some nodes have digests that nobody can open, and everything above hashes right.
pub struct Forger {
    trace: Trace,
    forged: BTreeMap<(Vec<u32>, u32, u32), H256>,
}

impl Forger {
    pub fn new(trace: Trace, forgeries: u32, dice: &mut Dice) -> Self {
        let mut forger = Self {
            trace,
            forged: BTreeMap::new(),
        };
        for _ in 0..forgeries {
            let (mut path, mut span) = (Vec::new(), forger.span(&[]));
            loop {
                let child = span.child(dice.below(span.children()));
                let lowest = span.is_lowest();
                if dice.below(3) == 0 || lowest && path.len() + 1 == forger.trace.levels.len() {
                    let digest = dice.hash();
                    forger.forged.insert((path, child.first, child.leaves), digest);
                    break;
                }
                span = child;
                if lowest {
                    path.push(child.first);
                    span = forger.span(&path);
                }
            }
        }
        forger
    }

    fn span(&self, path: &[u32]) -> Span {
        Span {
            first: 0,
            leaves: self.trace.leaves(path),
        }
    }

    /// Children that hash to the node with these leaves.
    fn posting(&self, path: &[u32], span: Span) -> Vec<H256> {
        let digest = |index| {
            let child = span.child(index);
            let key = (path.to_vec(), child.first, child.leaves);
            self.forged
                .get(&key)
                .copied()
                .unwrap_or_else(|| match span.is_lowest() {
                    false => self.digest(path, child),
                    true => match [path, &[child.first]].concat() {
                        cell if cell.len() == self.trace.levels.len() => self.trace.cell(&cell),
                        tree => self.digest(&tree, self.span(&tree)),
                    },
                })
        };
        (0..span.children()).map(digest).collect()
    }

    fn digest(&self, path: &[u32], span: Span) -> H256 {
        parent(&self.posting(path, span), span.is_lowest()).unwrap()
    }

    pub fn root(&self) -> H256 {
        self.digest(&[], self.span(&[]))
    }

    pub fn defend(&self, game: &Game) -> Move {
        match game.state() {
            State::Posting => {
                let leaves = game.leaves_in_dispute();
                let span = Span {
                    first: leaves.start,
                    leaves: leaves.end - leaves.start,
                };
                Move::Post(self.posting(game.path(), span).try_into().unwrap())
            }
            _ => self.trace.defend(game),
        }
    }
}
