//! How large a file the Bot API server takes, and gives. Pure.

const MIB: u64 = 1 << 20;
/// Whatever the server is.
const PHOTO: u64 = 10 * MIB;

/// What a server's limits depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerLimits {
    /// It is a Bot API server of the operator's own, run with `--local`.
    pub local: bool,
}

impl ServerLimits {
    /// Bytes of the largest file that it takes.
    #[must_use]
    pub fn upload(self) -> u64 {
        if self.local { 2_000 * MIB } else { 50 * MIB }
    }

    /// Bytes of the largest file that it gives, where there is a limit.
    #[must_use]
    pub fn download(self) -> Option<u64> {
        (!self.local).then_some(20 * MIB)
    }

    /// Why a file can't be sent, if it can't.
    #[must_use]
    pub fn refuses(self, name: &str, size: u64, is_photo: bool) -> Option<String> {
        let most = self.upload();
        let own =
            if self.local { "" } else { "; a Bot API server of your own takes 2000 MiB (`local_server` in [bot])" };
        match size {
            0 => Some(format!("the file `{name}` is empty, and Telegram takes no empty files")),
            _ if size > most => {
                Some(format!("the file `{name}` has {}, and at most {} can be sent{own}", mib(size), mib(most)))
            }
            _ if is_photo && size > PHOTO => Some(format!(
                "the photo `{name}` has {}, and photos can have {} at most: send it as a document",
                mib(size),
                mib(PHOTO)
            )),
            _ => None,
        }
    }
}

/// A size for people, rounded up so that too much never looks like enough.
fn mib(bytes: u64) -> String {
    let tenths = (bytes * 10).div_ceil(MIB);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} MiB"),
        (whole, tenth) => format!("{whole}.{tenth} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_told_with_the_way_out() {
        let (public, local) = (ServerLimits { local: false }, ServerLimits { local: true });
        for (limits, size, is_photo, part) in [
            (public, 50 * MIB, false, None),
            (public, 50 * MIB + 1, false, Some("has 50.1 MiB, and at most 50 MiB can be sent; a Bot API server")),
            (local, 2_000 * MIB, false, None),
            (local, 2_000 * MIB + 1, false, Some("at most 2000 MiB")),
            (local, 10 * MIB, true, None),
            (local, 10 * MIB + 1, true, Some("send it as a document")),
            (public, 0, false, Some("is empty")),
        ] {
            let refusal = limits.refuses("a.bin", size, is_photo);
            assert_eq!(refusal.is_some(), part.is_some(), "{size}: {refusal:?}");
            assert!(part.is_none_or(|part| refusal.as_deref().is_some_and(|text| text.contains(part))), "{refusal:?}");
        }
    }
}
