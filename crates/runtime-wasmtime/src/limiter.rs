//! The memory of one guest, over everything it can grow.

use wasmtime::ResourceLimiter;

/// How much of the host's memory an element of a table takes, in bytes.
const ELEMENT: usize = 16;

/// Counts the memory of a guest and refuses more than its limit.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    /// In bytes.
    limit: usize,
    used: usize,
    refused: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            used: 0,
            refused: false,
        }
    }

    /// Whether the guest was ever refused memory because of its limit.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        let fits = used <= self.limit;
        if fits {
            self.used = used;
        } else {
            self.refused = true;
        }
        fits
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Beyond what the module itself declares, growth fails whatever the limit is.
        if maximum.is_some_and(|maximum| desired > maximum) {
            self.refused |= desired > self.limit;
            return Ok(false);
        }
        Ok(self.grow(current, desired))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(
            current.saturating_mul(ELEMENT),
            desired.saturating_mul(ELEMENT),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_count_together() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(limiter.table_growing(0, 1, None).unwrap());
        assert!(!limiter.refused());
        assert!(!limiter.memory_growing(40, 60, None).unwrap());
        assert!(limiter.refused());
        assert!(limiter.memory_growing(40, 44, None).unwrap());
    }

    #[test]
    fn a_modules_own_maximum_is_not_our_limit() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(!limiter.memory_growing(10, 20, Some(15)).unwrap());
        assert!(!limiter.refused());
    }
}
