//! A pixel image, with letters of a font that is part of the library.

use font8x8::{BASIC_FONTS, GREEK_FONTS, LATIN_FONTS, UnicodeFonts};
use plotters::prelude::DrawingBackend;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingErrorKind};
use std::convert::Infallible;

/// The dots of a letter in each direction.
const DOTS: i32 = 8;

/// Red, green and blue of each pixel, from the top left one on, row by row.
pub(super) struct Pixels {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Pixels {
    /// A black picture of a width and a height.
    pub(super) fn new((width, height): (u32, u32)) -> Self {
        Pixels { width, height, rgb: vec![0; 3 * width as usize * height as usize] }
    }

    /// The picture as a PNG file.
    pub(super) fn to_png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        writer.finish()?;
        Ok(file)
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for &mut Pixels {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    /// Draws over the present pixels, as far as the color is opaque. Pixels outside are skipped.
    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let inside = |at: i32, size: u32| u32::try_from(at).ok().filter(|at| *at < size);
        let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) else {
            return Ok(());
        };
        let first = 3 * (y as usize * self.width as usize + x as usize);
        let (red, green, blue) = color.rgb;
        for (pixel, color_of) in self.rgb[first..first + 3].iter_mut().zip([red, green, blue]) {
            let (below, above) = (f64::from(*pixel), f64::from(color_of));
            *pixel = (below + (above - below) * color.alpha).round() as u8;
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let (width, height) = size(text, style);
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Right => -width,
            HPos::Center => -width / 2,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        let (scale, turned, color) = (scale(style), style.transform(), style.color());
        for (place, letter) in (0..).zip(text.chars()) {
            for (row, dots) in (0..).zip(dots_of(letter)) {
                for column in (0..DOTS).filter(|column| dots >> column & 1 == 1) {
                    let (right, down) = ((place * DOTS + column) * scale, row * scale);
                    for at in 0..scale * scale {
                        let (right, down) = (right + at % scale, down + at / scale);
                        let (right, down) = turned.transform(left + right, top + down);
                        self.draw_pixel((x + right, y + down), color)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = size(text, style);
        Ok((width.unsigned_abs(), height.unsigned_abs()))
    }
}

/// The dots of a letter by rows, the first one in the lowest bit.
fn dots_of(letter: char) -> [u8; DOTS as usize] {
    let dots = BASIC_FONTS.get(letter).or_else(|| LATIN_FONTS.get(letter));
    let dots = dots.or_else(|| GREEK_FONTS.get(letter)).or_else(|| BASIC_FONTS.get('?'));
    dots.unwrap_or_default()
}

/// The pixels of a dot in each direction.
fn scale(style: &impl BackendTextStyle) -> i32 {
    (style.size() as i32 / DOTS).max(1)
}

/// The width and the height of a text in pixels.
fn size(text: &str, style: &impl BackendTextStyle) -> (i32, i32) {
    let n_letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX / 1024);
    (n_letters.saturating_mul(DOTS * scale(style)), DOTS * scale(style))
}
