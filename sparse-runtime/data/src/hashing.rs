//! Feature hashing: XXH64, the same in every version and on every machine.
//!
//! A token of the column `name` gets the hash `XXH64(token, seed = XXH64(name, seed))`. Its column
//! among `2^b` is the low `b` bits; bit 63 is the sign, if signs are used. Tables that were trained
//! on hashed data stay valid as long as seed, names and `b` stay.
//!
//! Source of the algorithm: Y. Collet, *xxHash fast digest algorithm*, `doc/xxhash_spec.md` of
//! github.com/Cyan4973/xxHash.

use super::DataError;

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// How tokens become columns: into `2^bits` of them, by a hash with a seed.
///
/// ```
/// use nnz::data::Hashing;
///
/// let hashing = Hashing::new(18)?;
/// assert_eq!(hashing.n_columns(), 1 << 18);
/// // A function of seed, name and token alone.
/// assert_eq!(hashing.column("city", b"Bern"), hashing.column("city", b"Bern"));
/// assert_ne!(hashing.column("city", b"Bern"), hashing.column("brand", b"Bern"));
/// # Ok::<(), nnz::data::DataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    bits: u32,
    seed: u64,
}

impl Hashing {
    /// Into `2^bits` columns, with seed 0.
    ///
    /// # Errors
    ///
    /// [`DataError::HashBits`] unless `bits` is between 1 and 32.
    pub fn new(bits: u32) -> Result<Self, DataError> {
        match bits {
            1..=32 => Ok(Hashing { bits, seed: 0 }),
            _ => Err(DataError::HashBits { bits }),
        }
    }

    /// With another seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Hashing { seed, ..self }
    }

    /// The number of columns, `2^bits`.
    pub fn n_columns(self) -> usize {
        1 << self.bits
    }

    /// The column of a token in the column `name` of a file.
    pub fn column(self, name: &str, token: &[u8]) -> u64 {
        self.low(xxh64(token, self.seed_of(name)))
    }

    /// The column of several tokens together, each with the column of the file that it stands in:
    /// of a pair `site × device`, for example. The order of the parts counts.
    ///
    /// The hash is XXH64, with the seed, of the hashes of the parts as little-endian words.
    pub fn cross_column(self, parts: &[(&str, &[u8])]) -> u64 {
        let hash = |(name, token): &(&str, &[u8])| xxh64(token, self.seed_of(name));
        self.low(cross(&parts.iter().map(hash).collect::<Vec<_>>(), self.seed))
    }

    /// The seed itself.
    pub(crate) fn seed_alone(self) -> u64 {
        self.seed
    }

    /// The seed of the tokens of one column.
    pub(crate) fn seed_of(self, name: &str) -> u64 {
        xxh64(name.as_bytes(), self.seed)
    }

    /// The column of a hash.
    #[inline(always)]
    pub(crate) fn low(self, hash: u64) -> u64 {
        hash & ((1 << self.bits) - 1)
    }
}

/// The hash of several tokens together, by their hashes.
#[inline]
pub(crate) fn cross(hashes: &[u64], seed: u64) -> u64 {
    /// Pairs and triples need no memory of their own.
    const FEW: usize = 3;
    let mut bytes = [0; 8 * FEW];
    if hashes.len() > FEW {
        return xxh64(&hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect::<Vec<_>>(), seed);
    }
    for (word, hash) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(hashes) {
        *word = hash.to_le_bytes();
    }
    xxh64(&bytes[..8 * hashes.len()], seed)
}

/// XXH64 of some bytes.
#[inline]
pub(crate) fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let [p1, p2, p3, p4, p5] = PRIMES;
    let (stripes, mut rest) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(p5)
    } else {
        let mut lanes = [
            seed.wrapping_add(p1).wrapping_add(p2),
            seed.wrapping_add(p2),
            seed,
            seed.wrapping_sub(p1),
        ];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let [a, b, c, d] = lanes;
        let sum = (a.rotate_left(1).wrapping_add(b.rotate_left(7)))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        lanes
            .into_iter()
            .fold(sum, |hash, lane| (hash ^ round(0, lane)).wrapping_mul(p1).wrapping_add(p4))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
        rest = after;
    }
    if let Some((word, after)) = rest.split_first_chunk::<4>() {
        hash ^= u64::from(u32::from_le_bytes(*word)).wrapping_mul(p1);
        hash = hash.rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
        rest = after;
    }
    for &byte in rest {
        hash ^= u64::from(byte).wrapping_mul(p5);
        hash = hash.rotate_left(11).wrapping_mul(p1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(p2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(p3);
    hash ^ (hash >> 32)
}

#[inline(always)]
fn round(lane: u64, word: u64) -> u64 {
    let [p1, p2, ..] = PRIMES;
    lane.wrapping_add(word.wrapping_mul(p2)).rotate_left(31).wrapping_mul(p1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation, as its own tests and documentation have them.
    #[test]
    fn known_values() {
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a", 0), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc", 0), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"Nobody inspects the spammish repetition", 0), 0xfbce_a83c_8a37_8bf1);
        assert_eq!(xxh64(b"", 2_654_435_761), 0xac75_fda2_929b_17ef);
    }

    #[test]
    fn bits_are_checked() {
        for bits in [0, 33, u32::MAX] {
            assert_eq!(Hashing::new(bits), Err(DataError::HashBits { bits }));
        }
        let hashing = Hashing::new(1).unwrap();
        assert!((0..100).all(|i: u32| hashing.column("c", &i.to_le_bytes()) < 2));
        let widest = Hashing::new(32).unwrap();
        assert_eq!(widest.n_columns(), 1 << 32);
        assert_ne!(widest.seed(1).column("c", b"x"), widest.column("c", b"x"));
    }
}
