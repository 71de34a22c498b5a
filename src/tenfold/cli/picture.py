"""Photo development: the formula of `tenfold demo`, written for any array API namespace.

Takes a namespace of the array API standard (`tenfold`, `numpy`) and uint8 pixels (height, width,
3). Returns the developed pixels, float32 in 0 to 1. Tenfold and NumPy run the same code, so that
their results can be compared.

    developed = develop(tn, tn.asarray(pixels))      # nothing is computed yet
"""

from __future__ import annotations

import math
from typing import Any

# Any: the same code takes the arrays of two libraries.
Namespace = Any
Pixels = Any

RADIUS = 4
"""Pixels on each side that the blur reads."""
WEIGHTS = [math.exp(-((k / 2) ** 2) / 2) for k in range(-RADIUS, RADIUS + 1)]
"""A Gaussian of standard deviation 2 pixels, not yet divided by its sum."""
SHARPENING = 0.7
CLIPPED = 100
"""The darkest and the brightest 1 / CLIPPED of all pixels become black and white."""
BRIGHTENING_EXPONENT = 0.85
"""Below 1 brightens the middle tones."""
SATURATION = 1.15
DARKENING = 0.45
"""The loss of light in the corners."""


def develop(xp: Namespace, photograph: Pixels) -> Pixels:
    """Unsharp mask, luminance, histogram stretch, gamma and vignette as one expression.

    Unsharp mask: x + amount * (x - blur(x)). Luminance: ITU-R BT.709. The stretch maps a low and a
    high quantile of the luminance, taken from its sorted values, to 0 and 1.
    """
    image = xp.astype(photograph, xp.float32) / 255.0
    sharp = image + SHARPENING * (image - blur(xp, blur(xp, image, 0), 1))
    light = luminance(sharp)
    levels = xp.sort(xp.reshape(light, (-1,)))
    black, white = levels[levels.shape[0] // CLIPPED], levels[-(levels.shape[0] // CLIPPED)]
    grey = light[:, :, None]
    coloured = grey + SATURATION * (sharp - grey)
    toned = xp.clip((coloured - black) / (white - black), 0.0, 1.0)
    return toned**BRIGHTENING_EXPONENT * vignette(xp, *photograph.shape[:2])


def luminance(image: Pixels) -> Pixels:
    """How bright each pixel looks: a weighted sum of red, green and blue."""
    return 0.2126 * image[:, :, 0] + 0.7152 * image[:, :, 1] + 0.0722 * image[:, :, 2]


def blur(xp: Namespace, image: Pixels, axis: int) -> Pixels:
    """The Gaussian blur along one axis: a weighted sum of slices, mirrored at the edges."""
    leading = (slice(None),) * axis
    length = image.shape[axis]
    head = xp.flip(image[(*leading, slice(1, RADIUS + 1))], axis=axis)
    tail = xp.flip(image[(*leading, slice(length - RADIUS - 1, length - 1))], axis=axis)
    padded = xp.concat([head, image, tail], axis=axis)
    total = sum(WEIGHTS)
    shifted = [padded[(*leading, slice(k, k + length))] for k in range(len(WEIGHTS))]
    result = shifted[0] * (WEIGHTS[0] / total)
    for weight, shifted_image in zip(WEIGHTS[1:], shifted[1:], strict=True):
        result = result + shifted_image * (weight / total)
    return result


def vignette(xp: Namespace, height: int, width: int) -> Pixels:
    """The light that reaches each pixel: 1 in the middle, less with the distance from it."""
    y = xp.linspace(-1.0, 1.0, height, dtype=xp.float32)[:, None, None]
    x = xp.linspace(-1.0, 1.0, width, dtype=xp.float32)[None, :, None]
    return 1.0 - DARKENING * ((y * y + x * x) / 2.0) ** 1.5


def to_bytes(xp: Namespace, developed: Pixels) -> Pixels:
    """Levels 0 to 255, uint8, of a picture in 0 to 1."""
    return xp.astype(xp.round(xp.clip(developed, 0.0, 1.0) * 255.0), xp.uint8)
