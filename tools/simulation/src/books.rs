//! Who has won and lost how much. Nothing is created or lost: what one pays another gets.

use sp_core::H256;

/// Whose money it is. One account for all who play the same part in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Posts the task and pays for it.
    Client,
    /// The provider that the strategy is about, with its stake.
    Provider,
    /// Other providers of the same task.
    Rival,
    /// Honest verifiers.
    Verifier,
    /// Corrupt verifiers.
    Crony,
    /// Challenges results without being an auditor.
    Challenger,
    /// Whoever a client in front of it works for.
    Stranger,
    /// The insurance pool: gets what of a slash nobody else has a right to.
    Pool,
    /// Where protocol fees go.
    Fees,
    /// Destroyed.
    Burned,
    /// Everything outside the protocol: electricity, transaction fees, what a wrong answer is worth to
    /// somebody.
    World,
}

impl Role {
    /// All of them, in the order of the books.
    pub const ALL: [Self; 11] = [
        Self::Client,
        Self::Provider,
        Self::Rival,
        Self::Verifier,
        Self::Crony,
        Self::Challenger,
        Self::Stranger,
        Self::Pool,
        Self::Fees,
        Self::Burned,
        Self::World,
    ];

    /// The account that hashes are bound to.
    pub fn account(self) -> H256 {
        H256::repeat_byte(1 + self as u8)
    }
}

/// Balances in plancks, all zero at first. They always add up to zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books([i128; Role::ALL.len()]);

impl Books {
    /// Moves `amount` plancks. Nobody is asked whether it has them: who cannot pay is in the red.
    pub fn pay(&mut self, from: Role, to: Role, amount: u128) {
        let amount = i128::try_from(amount).unwrap_or(i128::MAX);
        self.0[from as usize] -= amount;
        self.0[to as usize] += amount;
    }

    /// What somebody has won, or lost.
    pub fn of(&self, role: Role) -> i128 {
        self.0[role as usize]
    }

    /// What some have won together.
    pub fn together(&self, roles: &[Role]) -> i128 {
        roles.iter().map(|role| self.of(*role)).sum()
    }

    /// Adds another task's books.
    pub fn add(&mut self, other: &Self) {
        for (mine, its) in self.0.iter_mut().zip(other.0) {
            *mine += its;
        }
    }
}
