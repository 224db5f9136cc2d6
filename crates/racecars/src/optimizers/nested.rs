//! An optimizer inside another optimizer's state.

use super::{Optimizer, saved};
use crate::error::Result;
use crate::space::Space;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An optimizer inside another optimizer's state. It is saved as its own bytes. After deserialization it
/// must be [opened](Nested::open) before use.
#[derive(Debug)]
pub(crate) enum Nested {
    Open(Box<dyn Optimizer>),
    Saved(Vec<u8>),
}

impl Nested {
    /// Restores the optimizer after deserialization. It must search this space.
    pub(crate) fn open(&mut self, space: &Space, depth: usize) -> Result<()> {
        if let Nested::Saved(bytes) = self {
            let optimizer = saved::load_nested(bytes, Some(space), depth + 1)?;
            if optimizer.space() != space {
                return Err(saved::unsound());
            }
            *self = Nested::Open(optimizer);
        }
        Ok(())
    }

    #[expect(clippy::panic, reason = "a restored state opens its nested optimizers")]
    pub(crate) fn optimizer(&self) -> &dyn Optimizer {
        match self {
            Nested::Open(optimizer) => &**optimizer,
            Nested::Saved(_) => panic!("a nested optimizer was used before it was opened"),
        }
    }

    #[expect(clippy::panic, reason = "a restored state opens its nested optimizers")]
    pub(crate) fn optimizer_mut(&mut self) -> &mut dyn Optimizer {
        match self {
            Nested::Open(optimizer) => &mut **optimizer,
            Nested::Saved(_) => panic!("a nested optimizer was used before it was opened"),
        }
    }
}

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Nested::Open(optimizer) => optimizer.save().serialize(serializer),
            Nested::Saved(bytes) => bytes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Nested::Saved)
    }
}
