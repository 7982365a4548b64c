//! Draws a picture of a text: the text chooses a fractal, and drawing it takes longer than a handler should.
//!
//! So the handler only queues it and answers at once; the `#[job]` draws, beside the chats' events and with limits of its
//! own, and sends the picture when it is done. When the queue is full, the bot says so instead of taking on more than
//! it can do.

use botyard_sdk::prelude::*;

/// Width and height in pixels.
const SIDE: u32 = 384;
/// Steps after which a point counts as one that stays.
const STEPS: u8 = 255;

#[plugin(methods = ["sendMessage", "sendDocument"])]
mod converter {
    /// Draw a picture of a text.
    #[command("convert")]
    fn convert(ctx: &mut Ctx) -> Result<(), Error> {
        if ctx.args().is_empty() {
            ctx.reply("What of? For example: /convert a rainy day");
            return Ok(());
        }
        match ctx.job("convert", ctx.args()).enqueue() {
            Ok(_) => ctx.reply("Queued. You get it when it is done."),
            Err(JobError::Full(_)) => ctx.reply("Busy right now, try again in a minute."),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    #[job("convert")]
    fn draw(ctx: &mut Ctx) -> Result<(), Error> {
        let text: String = ctx.payload()?;
        let picture = File::bytes("picture.bmp", bitmap(&text)).content_type("image/bmp");
        ctx.reply_media(document(picture).caption(text));
        Ok(())
    }
}

/// A Julia set in shades of grey, as a BMP file.
fn bitmap(text: &str) -> Vec<u8> {
    const PALETTE: u32 = 256 * 4;
    const HEAD: u32 = 54;
    let pixels = SIDE * SIDE;
    let mut file = Vec::with_capacity((HEAD + PALETTE + pixels) as usize);
    file.extend_from_slice(b"BM");
    let numbers = [HEAD + PALETTE + pixels, 0, HEAD + PALETTE, 40, SIDE, SIDE, 1 | 8 << 16, 0, pixels, 0, 0, 256, 0];
    for number in numbers {
        file.extend_from_slice(&number.to_le_bytes());
    }
    for shade in 0..=255 {
        file.extend_from_slice(&[shade, shade, shade, 0]);
    }
    let (real, imaginary) = constant(text);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let at = |n: u32| f64::from(n) / f64::from(SIDE) * 3.0 - 1.5;
            file.push(STEPS - escape(at(x), at(y), real, imaginary));
        }
    }
    file
}

/// A point near the edge of the Mandelbrot set, where the pictures are worth looking at.
fn constant(text: &str) -> (f64, f64) {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let angle = (hash >> 11) as f64 / (1_u64 << 53) as f64 * std::f64::consts::TAU;
    (0.7885 * angle.cos(), 0.7885 * angle.sin())
}

/// How many steps a point takes to get away.
fn escape(mut x: f64, mut y: f64, real: f64, imaginary: f64) -> u8 {
    let mut steps = 0;
    while steps < STEPS && x * x + y * y < 4.0 {
        (x, y) = (x * x - y * y + real, 2.0 * x * y + imaginary);
        steps += 1;
    }
    steps
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::converter::Plugin;

    #[test]
    fn a_text_becomes_a_picture_later() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/convert tea").texts(), ["Queued. You get it when it is done."]);
        let drawn = bot.run_jobs();
        let file = &drawn[0].files[0];
        assert_eq!(drawn[0].calls[0].1["caption"], "tea");
        assert_eq!(file.bytes.len(), u32::from_le_bytes(file.bytes[2..6].try_into().unwrap()) as usize);
    }

    #[test]
    fn a_full_queue_is_told() {
        let mut bot = Bot::<Plugin>::new().most_jobs(1);
        bot.text("/convert tea");
        assert_eq!(bot.text("/convert coffee").texts(), ["Busy right now, try again in a minute."]);
        assert_eq!(bot.waiting_jobs(), 1);
    }
}
