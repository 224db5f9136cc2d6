"""What functions return, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

# NumPy's letters of times, texts and complex numbers, which it would turn into floats.
NO_NUMBERS = "mMSUTc"


def numbers(returned: Any) -> Any:
    """An array of floats, NaN where it is masked.

    >>> numbers(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    array = np.asarray(returned)
    is_text = array.dtype.kind == "O" and any(isinstance(x, (str, bytes)) for x in array.flat)
    if is_text or array.dtype.kind in NO_NUMBERS:
        raise TypeError(f"values of type {array.dtype}, which are no numbers")
    array = array.astype(float)
    if isinstance(returned, np.ma.MaskedArray):
        array[np.ma.getmaskarray(returned)] = np.nan
    return array
