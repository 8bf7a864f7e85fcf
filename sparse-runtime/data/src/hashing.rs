//! Feature hashing: XXH64, the same in every version and on every machine.
//!
//! A token of the column `name` gets the hash `XXH64(token, seed = XXH64(name, seed))`. Its column
//! among `2^b` is the low `b` bits; bit 63 is the sign, if signs are used. Tables that were trained
//! on hashed data stay valid as long as seed, names and `b` stay.
//!
//! Source of the algorithm: Y. Collet, *xxHash fast digest algorithm*, `doc/xxhash_spec.md` of
//! github.com/Cyan4973/xxHash.

use super::DataError;
use serde::{Deserialize, Serialize};
pub(crate) use xxhash_rust::xxh64::xxh64;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Hashing {
    bits: u32,
    seed: u64,
}

/// What a file may say of [`Hashing`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    bits: u32,
    #[serde(default)]
    seed: u64,
}

impl TryFrom<Fields> for Hashing {
    type Error = DataError;

    fn try_from(Fields { bits, seed }: Fields) -> Result<Self, DataError> {
        Ok(Hashing::new(bits)?.seed(seed))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_kept_in_a_text_and_checked() {
        let hashing = Hashing::new(18).unwrap().seed(7);
        let text = serde_json::to_string(&hashing).unwrap();
        assert_eq!(serde_json::from_str::<Hashing>(&text).unwrap(), hashing);
        let hashing = serde_json::from_str::<Hashing>(r#"{"bits": 18}"#).unwrap();
        assert_eq!(hashing, Hashing::new(18).unwrap());
        let error = serde_json::from_str::<Hashing>(r#"{"bits": 40}"#).unwrap_err().to_string();
        assert!(error.starts_with(&DataError::HashBits { bits: 40 }.to_string()), "{error}");
    }

    /// Values of the reference implementation, as its own tests and documentation have them.
    #[test]
    fn known_values() {
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a", 0), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc", 0), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"Nobody inspects the spammish repetition", 0), 0xfbce_a83c_8a37_8bf1);
        assert_eq!(xxh64(b"", 2_654_435_761), 0xac75_fda2_929b_17ef);
    }

    /// Values of the package `xxhash` of Python: prefixes of one text, with seed 0 and with another
    /// one. The lengths are those around the words of 4 and 8 bytes and the stripes of 32.
    #[test]
    fn hashes_of_every_kind_of_length_are_those_of_the_reference() {
        let text: Vec<u8> = (0..300u32).map(|position| (position * 37 + 11) as u8).collect();
        for (len, plain, seeded) in [
            (0, 0xef46_db37_51d8_e999, 0xc434_9fc9_3c01_0000),
            (1, 0xf592_c0c7_639c_4cb6, 0x3f7e_bbd0_a20f_83cc),
            (3, 0x22c0_8528_601d_4f27, 0xb829_b5fb_ba7f_12fb),
            (4, 0xfb1e_5cf2_f1ae_4d95, 0x4d32_e4c8_42c6_371e),
            (7, 0x5613_ac51_0496_c04e, 0x5663_14bf_1bda_8aab),
            (8, 0x57cb_2b75_21f3_e21a, 0x696e_1fe0_e0df_37f4),
            (15, 0x90a9_714e_b00e_8d29, 0x1706_9dd5_19d9_0d9d),
            (31, 0xe4a0_e629_e519_a4ae, 0xa348_b910_bc65_b7bd),
            (32, 0xcc6b_8aaa_da79_0b2d, 0x41c2_eada_450d_18f0),
            (33, 0x35ec_4985_0475_a832, 0xb6f8_c0b7_6af8_f9da),
            (63, 0xbf9f_0ba3_cf95_b28a, 0xdcfe_3172_0304_f52b),
            (64, 0x155c_cce4_bf32_befc, 0x4779_d2a2_6a50_85a9),
            (100, 0x4826_e367_566e_a023, 0xe384_91a6_daeb_0e8a),
            (256, 0x43c9_2f09_cb3e_28cf, 0xb883_a9a2_9d66_eaaf),
            (300, 0x8923_b28a_8498_a506, 0x1ccc_1885_7ab7_b4ad),
        ] {
            let found = [0, 0x9e37_79b9_7f4a_7c15].map(|seed| xxh64(&text[..len], seed));
            assert_eq!(found, [plain, seeded], "{len} bytes");
        }
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
