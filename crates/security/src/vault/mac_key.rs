//! Keys of HMAC-SHA-256 that are derived from the key of the blind index.

/// Declares a key of HMAC-SHA-256, as the state of a hash that has read it. `Debug` prints `***`.
macro_rules! mac_key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(hmac::Hmac<sha2::Sha256>);

        impl $name {
            pub(super) fn new(bytes: &$crate::vault::aead::KeyBytes) -> Self {
                Self($crate::secret::keyed_hash(&**bytes))
            }

            #[must_use]
            pub fn from_bytes(bytes: [u8; $crate::vault::aead::KEY_BYTES]) -> Self {
                Self::new(&$crate::vault::aead::KeyBytes::new(bytes))
            }
        }

        $crate::secret::hidden!($name);
    };
}

pub(super) use mac_key;
